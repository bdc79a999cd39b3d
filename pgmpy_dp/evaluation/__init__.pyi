"""The names of the room, read by lazy_loader and by type checkers."""

from .auditing import AuditResult as AuditResult
from .auditing import audit as audit
from .comparison import combine as combine
from .comparison import compare as compare
from .comparison import kl_divergence as kl_divergence
from .example_networks import bnlearn_network as bnlearn_network
from .example_networks import random_markov_network as random_markov_network
from .prediction import compare_prediction as compare_prediction
from .prediction import mean_squared_error as mean_squared_error
from .prediction import prediction_accuracy as prediction_accuracy
