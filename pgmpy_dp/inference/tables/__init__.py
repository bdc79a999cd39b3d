"""Tables with named axes, their layout in flat vectors, and operations on them."""
