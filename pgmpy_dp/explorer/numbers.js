// Normal and binomial quantiles, the generator of `deviations.py`, and quantiles of draws.

const LOG_HALF = Math.log(0.5), LOG_ROOT = 0.5 * Math.log(2 * Math.PI);
// Chebyshev coefficients of log erfc (Press et al., Numerical Recipes, 3rd edition, section 6.2.2).
const ERFC = [
  -1.3026537197817094, 6.419697923564903e-1, 1.9476473204185836e-2, -9.561514786808631e-3, -9.46595344482036e-4,
  3.66839497852761e-4, 4.2523324806907e-5, -2.0278578112534e-5, -1.624290004647e-6, 1.30365583558e-6,
  1.5626441722e-8, -8.5238095915e-8, 6.529054439e-9, 5.059343495e-9, -9.91364156e-10, -2.27365122e-10,
  9.6467911e-11, 2.394038e-12, -6.886027e-12, 8.94487e-13, 3.13092e-13, -1.12708e-13, 3.81e-16, 7.106e-15,
  -1.523e-15, -9.4e-17, 1.21e-16, -2.8e-17,
];

/** Logarithm of the normal distribution function. */
function logNormal(x) {
  const z = Math.abs(x) * Math.SQRT1_2;
  const t = 2 / (2 + z);
  const y = 4 * t - 2;
  let d = 0, before = 0;
  for (let j = ERFC.length - 1; j > 0; j--) {
    const now = y * d - before + ERFC[j];
    before = d;
    d = now;
  }
  const tail = LOG_HALF + Math.log(t) - z * z + 0.5 * (ERFC[0] + y * d) - before;
  return x > 0 ? Math.log1p(-Math.exp(tail)) : tail;
}

/** The normal quantile at exp(y): a rational start (Abramowitz and Stegun, 26.2.23), and Halley's step on the logarithm. */
function quantileOfLog(y) {
  if (y > LOG_HALF) return -quantileOfLog(Math.log(-Math.expm1(y)));
  const t = Math.sqrt(-2 * y);
  const x = (2.515517 + 0.802853 * t + 0.010328 * t ** 2) / (1 + 1.432788 * t + 0.189269 * t ** 2 + 0.001308 * t ** 3) - t;
  const log = logNormal(x), slope = Math.exp(-log - 0.5 * x * x - LOG_ROOT), step = (log - y) / slope;
  return x - step / (1 + 0.5 * step * (x + slope));
}

/** The least count whose binomial probability of no more reaches u, added up from far below the mean. */
function binomialQuantile(u, n, p) {
  if (n <= 0 || p <= 0) return 0;
  if (p >= 1) return n;
  let k = Math.max(Math.floor(n * p - 10 * Math.sqrt(n * p * (1 - p)) - 30), 0);
  let mass = Math.exp(logFactorial(n) - logFactorial(k) - logFactorial(n - k) + k * Math.log(p) + (n - k) * Math.log1p(-p));
  for (let sum = mass; k < n && sum < u; sum += mass) {
    mass *= (n - k) * p / ((k + 1) * (1 - p));
    k++;
  }
  return k;
}

const FACTORIALS = [0];
for (let k = 1; k < 32; k++) FACTORIALS.push(FACTORIALS[k - 1] + Math.log(k));

function logFactorial(n) {
  if (n < 32) return FACTORIALS[n];
  const r = 1 / (n * n);
  return (n + 0.5) * Math.log(n) - n + LOG_ROOT + (1 / 12 - r * (1 / 360 - r * (1 / 1260 - r / 1680))) / n;
}

/** numpy's SFC64 from a state of three words and a counter, as numbers in [0, 1). */
class RandomNumbers {
  constructor(state) {
    this.state = BigUint64Array.from(state, BigInt); // words wrap around as they are written
    this.known = [];
  }

  /** A function that gives the numbers one by one: every answer reads the same ones from the start. */
  reader() {
    let place = 0;
    return () => {
      if (place === this.known.length) this.known.push(this.next());
      return this.known[place++];
    };
  }

  next() {
    const s = this.state, [a, b, c, counter] = s, found = BigInt.asUintN(64, a + b + counter);
    s[0] = b ^ (b >> 11n);
    s[1] = c + (c << 3n);
    s[2] = ((c << 24n) | (c >> 40n)) + found;
    s[3]++;
    return Number(found >> 11n) / 2 ** 53;
  }
}

/** The quantile of sorted values, by numpy's methods "weibull" and "linear". */
function quantile(sorted, share, method = 'weibull') {
  const n = sorted.length;
  const at = Math.min(Math.max(method === 'weibull' ? share * (n + 1) - 1 : share * (n - 1), 0), n - 1);
  const below = Math.floor(at);
  return sorted[below] + (at - below) * (sorted[Math.min(below + 1, n - 1)] - sorted[below]);
}
