// Sums, normal and binomial quantiles, the generator of `deviations.py`, and distributions and quantiles of draws.

const sumOf = (values) => values.reduce((sum, value) => sum + value, 0);
const dot = (one, other) => one.reduce((sum, own, n) => sum + own * other[n], 0);
/** A function of a number that computes each value once. */
const once = (compute, known = []) => (n) => known[n] ??= compute(n);

const LOG_HALF = Math.log(0.5), LOG_ROOT = 0.5 * Math.log(2 * Math.PI);

/** Logarithm of the normal distribution function: its series, and in the tail its continued fraction. */
function logNormal(x) {
  const density = -0.5 * x * x - LOG_ROOT;
  if (x < -3) {
    let fraction = -x;
    for (let n = 60; n > 0; n--) fraction = n / fraction - x;
    return density - Math.log(fraction);
  }
  if (x > 9) return 0;
  let sum = x, term = x;
  for (let n = 3; Math.abs(term) > 1e-17; n += 2) sum += term *= x * x / n;
  return Math.log(0.5 + Math.exp(density) * sum);
}

/** The normal quantile at exp(y): Abramowitz and Stegun's formula 26.2.23, and Halley's step on the logarithm. */
function quantileOfLog(y) {
  if (y > LOG_HALF) return -quantileOfLog(Math.log(-Math.expm1(y)));
  const t = Math.sqrt(-2 * y);
  const tail = (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
  const x = tail - t, log = logNormal(x), slope = Math.exp(-log - 0.5 * x * x - LOG_ROOT), step = (log - y) / slope;
  return x - step / (1 + 0.5 * step * (x + slope));
}

/** A function that finds the place of a number in [0, 1) among weights that follow one another. */
function placeAmong(weights) {
  let total = 0;
  const sums = weights.map((weight) => total += weight);
  return (u) => sums.findIndex((sum) => sum > u * total);
}

/** The least count whose binomial probability of no more reaches u. */
function binomialQuantile(u, n, p) {
  let least = Math.min(Math.floor((n + 1) * p), n); // at first the most probable count
  const masses = [1]; // relative to it, as far as they are not negligible
  for (let k = least; k < n && masses.at(-1) > 1e-20; k++) masses.push(masses.at(-1) * (n - k) / (k + 1) * p / (1 - p));
  for (; least > 0 && masses[0] > 1e-20; least--) masses.unshift(masses[0] * least / (n - least + 1) * (1 - p) / p);
  return least + placeAmong(masses)(u);
}

/** numpy's SFC64 from three words and a counter: a function that starts its numbers in [0, 1) anew, one by one. */
function randomNumbers(words) {
  const s = BigUint64Array.from(words, BigInt), known = []; // words wrap around as they are written
  const next = () => {
    const [a, b, c, counter] = s, found = BigInt.asUintN(64, a + b + counter);
    s.set([b ^ (b >> 11n), c + (c << 3n), ((c << 24n) | (c >> 40n)) + found, counter + 1n]);
    return Number(found >> 11n) / 2 ** 53;
  };
  return () => {
    let place = 0;
    return () => known[place++] ??= next();
  };
}

/** Scale numbers by state, then draw, in place: each draw sums to one. */
function normalise(states) {
  const sums = states.reduce((sum, own) => sum.map((value, d) => value + own[d]));
  for (const own of states) own.forEach((value, d) => own[d] = value / sums[d]);
}

/** The same for logarithms. */
function normaliseLogs(states) {
  const tops = states.reduce((top, own) => top.map((value, d) => Math.max(value, own[d])));
  for (const own of states) own.forEach((log, d) => own[d] = Math.exp(log - tops[d]));
  normalise(states);
}

/** The mean of draws, and bounds that hold with 90 %: quantiles at Weibull's plotting positions. */
function summary(draws) {
  const sorted = draws.slice().sort(), last = sorted.length - 1;
  const quantile = (share) => {
    const at = Math.min(Math.max(share * (last + 2) - 1, 0), last), below = Math.floor(at);
    return sorted[below] + (at - below) * (sorted[Math.min(below + 1, last)] - sorted[below]);
  };
  return { value: sumOf(draws) / draws.length, lower: quantile(0.05), upper: quantile(0.95) };
}

/** The mean of draws of an answer and bounds of 90 %, which reach as far as those of normal draws, or further. */
function bounded(draws) {
  const { value, lower, upper } = summary(draws);
  const reach = QUANTILE * Math.sqrt(sumOf(draws.map((own) => (own - value) ** 2)) / draws.length);
  return { lower: Math.min(lower, value - reach), upper: Math.max(upper, value + reach) };
}
