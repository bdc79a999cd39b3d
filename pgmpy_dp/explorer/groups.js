// Networks over groups of states (`networks/fitted_in_groups.py`): given its group, a state depends on nothing else.

class GroupedEngine extends TreeEngine {
  constructor(tree, possible, { places, within }) {
    super(tree, possible);
    // By variable: its place in the tree, and the groups of its states, their shares, and draws of these or null.
    Object.assign(this, { places, within });
    const weighted = Float64Array.from(tree.own), starts = tree.cards.map(() => 0);
    tree.cards.forEach((groups, v) => { if (v + 1 < starts.length) starts[v + 1] = starts[v] + groups; });
    this.largest = within.map((own, v) => own && Array.from({ length: tree.cards[places[v]] }, (_, group) => {
      const share = own.groups.reduce((most, g, s) => (g === group ? Math.max(most, own.shares[s]) : most), 0);
      weighted[starts[places[v]] + group] += Math.log(share);
      return own.groups.findIndex((g, s) => g === group && own.shares[s] === share);
    }));
    this.weighted = new Networks(tree, weighted, 1);
  }

  /** The groups of given states. */
  grouped(given) {
    return new Map([...given].map(([v, s]) => [this.places[v], this.within[v] ? this.within[v].groups[s] : s]));
  }

  /** The probability of given states in their groups. */
  shareOf(given) {
    return [...given].reduce((product, [v, s]) => product * (this.within[v]?.shares[s] ?? 1), 1);
  }

  /** Draws of the share of a state in its group. */
  drawnShares(variable, state, ofRecords) {
    const count = this.totals.length;
    return this.within[variable].drawn[+ofRecords].subarray(state * count, (state + 1) * count);
  }

  exact(given) {
    const found = super.exact(this.grouped(given));
    if (!found) return null;
    const of = (variable) => {
      const own = this.within[variable], states = found.of(this.places[variable]);
      return own ? Array.from(own.groups, (g, s) => ({ value: states[g].value * own.shares[s] })) : states;
    };
    return { given, share: found.share * this.shareOf(given), of };
  }

  drawn(given, ofRecords, stream) {
    const found = super.drawn(this.grouped(given), ofRecords, stream);
    if (!found) return null;
    const counts = Float64Array.from(found.counts);
    for (const [v, s] of given) {
      if (this.within[v]) this.drawnShares(v, s, ofRecords).forEach((share, d) => counts[d] *= share);
    }
    const of = once((variable) => {
      const own = this.within[variable], states = found.of(this.places[variable]);
      if (!own) return states;
      return Array.from(own.groups, (g, s) => {
        const shares = this.drawnShares(variable, s, ofRecords);
        return states[g].map((p, d) => p * shares[d]);
      });
    });
    return { counts, records: found.records * this.shareOf(given), of };
  }

  mostProbable(given) {
    const { found, proven } = this.weighted.mostProbable(this.grouped(given));
    const states = this.places.map((place, v) => given.get(v) ?? this.largest[v]?.[found.get(place)] ?? found.get(place));
    return { found: new Map(states.map((state, v) => [v, state])), proven };
  }

  informs(variable, given) {
    return super.informs(this.places[variable], this.grouped(given));
  }

  unknownEffects({ given }, variable) {
    return super.unknownEffects({ given: this.grouped(given) }, this.places[variable]);
  }
}
