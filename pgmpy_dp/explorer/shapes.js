// Means of numbers within bins (`models/shapes.py`): the density leans with the probabilities of the bins.

const LEAST_CHANCE = 1e-12, MOST_TILT = 50;
const clip = (value, most) => Math.min(Math.max(value, -most), most);

class Shape {
  constructor(held) { Object.assign(this, held); }

  /** The slope of the log-density in each bin: that of the bins' probabilities, relative to those without evidence. */
  leanings(chances) {
    const { knots, centres, logs, most } = this, found = most.map(() => 0);
    const heights = Array.from(knots, (bin, k) => (chances[bin] > 0 ? Math.log(Math.max(chances[bin], LEAST_CHANCE)) - logs[k] : NaN));
    const slopes = heights.slice(1).map((height, k) => (height - heights[k]) / Math.max(centres[k + 1] - centres[k], LEAST_CHANCE));
    knots.forEach((bin, k) => {
      const below = slopes[k - 1] ?? slopes[k], above = slopes[k] ?? below;
      found[bin] = clip(((below || 0) + (above || 0)) / 2, most[bin]);
    });
    return found;
  }

  /** The mean of all numbers and bounds of it, the share of records that have one, and means of states relative to it. */
  mean(chances, leaning) {
    const { owners, offsets, middles, most, rows } = this, slopes = leaning ? this.leanings(chances) : null;
    const tilt = Array.from(offsets, (offset, cell) => (slopes ? Math.exp(clip(slopes[owners[cell]] * offset, MOST_TILT)) : 1));
    const known = Math.max(most.reduce((sum, _, bin) => sum + chances[bin], 0), LEAST_CHANCE);
    const means = rows.map((row) => {
      const masses = most.map(() => 0), sums = most.map(() => 0);
      row.forEach((share, cell) => {
        masses[owners[cell]] += share * tilt[cell];
        sums[owners[cell]] += share * tilt[cell] * middles[cell];
      });
      return sums.map((sum, bin) => sum / masses[bin]);
    });
    const [value, ...drawn] = means.map((own) => own.reduce((sum, mean, bin) => sum + mean * chances[bin], 0) / known);
    const sorted = drawn.sort((a, b) => a - b), [low, high] = [LOWER, 1 - LOWER].map((share) => quantile(sorted, share));
    const numbers = chances.map((_, s) => (s < most.length ? means[0][s] - value : 0));
    return { value, known, numbers, low: Math.min(low, value), high: Math.max(high, value) };
  }
}
