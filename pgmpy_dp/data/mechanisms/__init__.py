"""One file a mechanism: the argument of its sensitivity, its price and its draw together."""
