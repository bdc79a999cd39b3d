"""Tables with named axes, their layout in flat vectors, and what is computed on them."""
