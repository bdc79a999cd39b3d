// Means of numbers within bins (`models/shapes.py`): the density leans with the probabilities of the bins.

const LEAST_CHANCE = 1e-12, MOST_TILT = 2, MISSED = 0.25, TREND = 0.4, QUANTILE = 1.6448536269514722;
const clip = (value, most) => Math.min(Math.max(value, -most), most);

/** The slope of the log-density in each bin: that of the bins' probabilities, relative to those without evidence. */
function leanings({ knots, centres, logs, most }, chances) {
  const found = most.map(() => 0), log = (chance) => chance > 0 ? Math.log(Math.max(chance, LEAST_CHANCE)) : NaN;
  const heights = knots.map((bin, k) => log(chances[bin]) - logs[k]);
  const slopes = heights.slice(1).map((height, k) =>
    (height - heights[k]) / Math.max(centres[k + 1] - centres[k], LEAST_CHANCE));
  knots.forEach((bin, k) => {
    const below = slopes[k - 1] ?? slopes[k], above = slopes[k] ?? below;
    found[bin] = clip(((below || 0) + (above || 0)) / 2, most[bin]);
  });
  return found;
}

/** The mean of all numbers, bounds of it, the share of records that have one, and means of states relative to it. */
function meanWithin(shape, chances, leaning) {
  const { owners, offsets, middles, ends, most, rows } = shape;
  const slopes = leaning ? leanings(shape, chances) : most.map(() => 0);
  const tilt = offsets.map((offset, cell) => Math.exp(clip(slopes[owners[cell]] * offset, MOST_TILT)));
  const known = Math.max(most.reduce((sum, _, bin) => sum + chances[bin], 0), LEAST_CHANCE);
  const means = (row, numbers) => {
    const masses = most.map(() => 0), sums = most.map(() => 0);
    row.forEach((share, cell) => {
      masses[owners[cell]] += share * tilt[cell];
      sums[owners[cell]] += share * tilt[cell] * numbers[cell];
    });
    return sums.map((sum, bin) => sum / masses[bin]);
  };
  const whole = (own) => own.reduce((sum, mean, bin) => sum + mean * chances[bin], 0) / known;
  const inside = means(rows[0], middles), value = whole(inside);
  const { lower, upper } = summary(Float64Array.from(rows.slice(1), (row) => whole(means(row, middles))));
  const apart = means(rows[0], middles.map((x, cell) => Math.abs(x - inside[owners[cell]])));
  const within = apart.map((x) => x * Math.sqrt(Math.PI / 2)), square = (list) => whole(list.map((x) => x * x));
  const missed = (records, trend) => QUANTILE * Math.sqrt((MISSED * whole(within)) ** 2 +
    square(within) / Math.max(records, 1) + TREND * trend ** 2 * square(inside.map((x) => x - value)));
  return {
    value, known, numbers: chances.map((_, s) => (s < most.length ? inside[s] - value : 0)),
    drawn: [Math.max(value - lower, 0), Math.max(upper - value, 0)],
    unseen: ends.map((end) => Math.abs(value - whole(means(rows[0], end)))),
    missed: leaning ? missed : () => 0,
  };
}
