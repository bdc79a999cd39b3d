"""Each mechanism has one file: the argument of its sensitivity, its price and its draw stand together."""
