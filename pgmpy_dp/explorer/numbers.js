// Normal and binomial quantiles, the generator of `deviations.py`, and weibull quantiles of draws.

const LOG_HALF = Math.log(0.5);
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

/** The normal quantile at exp(y), y at most log(1/2): a rational start (Acklam), and Newton steps on the logarithm. */
function lowerQuantile(y) {
  let x;
  if (y < -3.717) {
    const q = Math.sqrt(-2 * y);
    x = (((((-7.784894002430293e-3 * q - 3.223964580411365e-1) * q - 2.400758277161838) * q - 2.549732539343734) * q
      + 4.374664141464968) * q + 2.938163982698783)
      / ((((7.784695709041462e-3 * q + 3.224671290700398e-1) * q + 2.445134137142996) * q + 3.754408661907416) * q + 1);
  } else {
    const q = Math.exp(y) - 0.5, r = q * q;
    x = (((((-3.969683028665376e1 * r + 2.209460984245205e2) * r - 2.759285104469687e2) * r + 1.38357751867269e2) * r
      - 3.066479806614716e1) * r + 2.506628277459239) * q
      / (((((-5.447609879822406e1 * r + 1.615858368580409e2) * r - 1.556989798598866e2) * r + 6.680131188771972e1) * r
      - 1.328068155288572e1) * r + 1);
  }
  for (let step = y < -30 ? 3 : 1; step > 0; step--) {
    const log = logNormal(x);
    x -= (log - y) * Math.exp(log + 0.5 * x * x + 0.9189385332046727);
  }
  return x;
}

/** The normal quantile at exp(y). */
function quantileOfLog(y) {
  return y <= LOG_HALF ? lowerQuantile(y) : -lowerQuantile(Math.log(-Math.expm1(y)));
}

/** The normal quantile at u. */
function normalQuantile(u) {
  return u <= 0.5 ? lowerQuantile(Math.log(u)) : -lowerQuantile(Math.log1p(-u));
}

/** The least count whose binomial probability of no more reaches u. */
function binomialQuantile(u, n, p) {
  if (n <= 0 || p <= 0) return 0;
  if (p >= 1) return n;
  if (p > 0.5) return n - binomialAbove(u, n, 1 - p);
  let k = Math.floor(n * p), mass = Math.exp(logBinomial(k, n, p));
  let below = 0; // probability of fewer than k
  for (let j = k, part = mass; j > 0 && part > 1e-18; j--) below += part *= j * (1 - p) / ((n - j + 1) * p);
  while (k > 0 && below >= u) { mass *= k * (1 - p) / ((n - k + 1) * p); k--; below -= mass; }
  while (k < n && below + mass < u) { below += mass; mass *= (n - k) * p / ((k + 1) * (1 - p)); k++; }
  return k;
}

/** The largest count whose binomial probability of at least as many reaches u. */
function binomialAbove(u, n, p) {
  let k = Math.floor(n * p), mass = Math.exp(logBinomial(k, n, p));
  let above = 0; // probability of more than k
  for (let j = k, part = mass; j < n && part > 1e-18; j++) above += part *= (n - j) * p / ((j + 1) * (1 - p));
  while (k < n && above >= u) { mass *= (n - k) * p / ((k + 1) * (1 - p)); k++; above -= mass; }
  while (k > 0 && above + mass < u) { above += mass; mass *= k * (1 - p) / ((n - k + 1) * p); k--; }
  return k;
}

function logBinomial(k, n, p) {
  return logFactorial(n) - logFactorial(k) - logFactorial(n - k) + k * Math.log(p) + (n - k) * Math.log1p(-p);
}

const FACTORIALS = [0];
for (let k = 1; k < 32; k++) FACTORIALS.push(FACTORIALS[k - 1] + Math.log(k));

function logFactorial(n) {
  if (n < 32) return FACTORIALS[n];
  const r = 1 / (n * n);
  return (n + 0.5) * Math.log(n) - n + 0.9189385332046727 + (1 / 12 - r * (1 / 360 - r * (1 / 1260 - r / 1680))) / n;
}

/** numpy's SFC64 from a state of three words and a counter, as numbers in [0, 1); words are pairs of 32 bits. */
class RandomNumbers {
  constructor(state) {
    this.state = Uint32Array.from(state); // low and high half of a, b, c and the counter
    this.known = [];
  }

  /** The number at a place of the stream: every answer reads the same stream from its start. */
  at(place) {
    while (this.known.length <= place) this.known.push(this.next());
    return this.known[place];
  }

  next() {
    const s = this.state;
    let low = s[0] + s[2] + s[6];
    let high = (s[1] + s[3] + s[7] + Math.floor(low / 4294967296)) >>> 0;
    low >>>= 0;
    s[6]++;
    if (s[6] === 0) s[7]++;
    const [b, up] = [s[2], s[3]];
    s[0] = b ^ ((b >>> 11) | (up << 21));
    s[1] = up ^ (up >>> 11);
    const sum = s[4] + ((s[4] << 3) >>> 0);
    const [c, over] = [s[4], s[5]];
    s[2] = sum;
    s[3] = over + ((over << 3) | (c >>> 29)) + (sum > 4294967295 ? 1 : 0);
    const turned = ((c << 24) | (over >>> 8)) >>> 0, raised = ((over << 24) | (c >>> 8)) >>> 0;
    s[4] = turned + low;
    s[5] = raised + high + (turned + low > 4294967295 ? 1 : 0);
    return (high * 2097152 + (low >>> 11)) / 9007199254740992;
  }
}

/** The quantile of sorted values, by numpy's methods "weibull" and "linear". */
function quantile(sorted, share, method = 'weibull') {
  const n = sorted.length;
  const at = Math.min(Math.max(method === 'weibull' ? share * (n + 1) - 1 : share * (n - 1), 0), n - 1);
  const below = Math.floor(at);
  return sorted[below] + (at - below) * (sorted[Math.min(below + 1, n - 1)] - sorted[below]);
}
