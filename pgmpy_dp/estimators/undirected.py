def fit_undirected(*a): raise NotImplementedError
