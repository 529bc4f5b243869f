"""Functions of torchmetrics."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torchmetrics import functional
from torchmetrics.functional import classification, image, regression

from zoo import Arguments, Model

Pair = tuple[Tensor, Tensor]


def binary() -> Pair:
    return torch.randn(12), torch.tensor([0, 1] * 6)


def all_negative() -> Pair:
    return torch.rand(12), torch.zeros(12, dtype=torch.long)


def all_positive() -> Pair:
    return torch.randn(12), torch.ones(12, dtype=torch.long)


def no_labels() -> Pair:
    return torch.randn(12), torch.full((12,), 3)


def labels() -> Pair:
    return torch.randint(0, 2, (12,)), torch.tensor([0, 1] * 6)


def multiclass() -> Pair:
    return torch.randn(12, 3), torch.tensor([0, 1, 2] * 4)


def one_class() -> Pair:
    return torch.rand(12, 3).softmax(1), torch.ones(12, dtype=torch.long)


def columns() -> Pair:
    return torch.randn(12, 2), torch.randn(12, 2)


def constant_columns() -> Pair:
    return torch.randn(12, 2), torch.ones(12, 1) * torch.tensor([1.0, 2.0])


def column() -> Pair:
    return torch.randn(12), torch.randn(12)


def constant_column() -> Pair:
    return torch.randn(12), torch.ones(12)


def positive() -> Pair:
    return torch.rand(12) + 0.1, torch.rand(12) + 0.1


def negative() -> Pair:
    return -torch.rand(12), torch.rand(12)


def ranked() -> Pair:
    return torch.rand(8), torch.tensor([0, 1] * 4)


def irrelevant() -> Pair:
    return torch.rand(8), torch.zeros(8, dtype=torch.long)


def graded() -> Pair:
    return torch.rand(8), torch.randint(0, 4, (8,))


def categories() -> Pair:
    return torch.randint(0, 3, (24,)), torch.randint(0, 3, (24,))


def two_categories() -> Pair:
    return torch.arange(24) % 2, torch.zeros(24, dtype=torch.long)


def images() -> Pair:
    return torch.rand(2, 3, 24, 24), torch.rand(2, 3, 24, 24)


def tokens() -> Pair:
    return torch.randn(2, 6, 8), torch.randint(0, 8, (2, 6))


def of(function: Callable[..., Any], *inputs: Callable[[], Arguments], **options: Any) -> Model:
    """The first of the inputs are usual ones, the others edge cases."""
    usual, *edges = inputs
    return Model(
        lambda: partial(function, **options) if options else function, usual, edges=tuple(edges)
    )


BINARY = (binary, all_negative, all_positive, no_labels)
MULTICLASS = (multiclass, one_class)
COLUMN = (column, constant_column)
COLUMNS = (columns, constant_columns)

MODELS = {
    "binary_accuracy": of(classification.binary_accuracy, *BINARY),
    "binary_stat_scores": of(classification.binary_stat_scores, labels, no_labels),
    "binary_auroc": of(classification.binary_auroc, *BINARY),
    "binary_average_precision": of(classification.binary_average_precision, *BINARY),
    "binary_precision_recall_curve": of(classification.binary_precision_recall_curve, *BINARY),
    "binary_roc": of(classification.binary_roc, *BINARY),
    "binary_confusion_matrix": of(classification.binary_confusion_matrix, *BINARY),
    "binary_matthews_corrcoef": of(classification.binary_matthews_corrcoef, *BINARY),
    "binary_hinge_loss": of(classification.binary_hinge_loss, *BINARY),
    "multiclass_accuracy": of(classification.multiclass_accuracy, *MULTICLASS, num_classes=3),
    "multiclass_auroc": of(classification.multiclass_auroc, *MULTICLASS, num_classes=3),
    "multiclass_average_precision": of(
        classification.multiclass_average_precision, *MULTICLASS, num_classes=3
    ),
    "multiclass_confusion_matrix": of(
        classification.multiclass_confusion_matrix, *MULTICLASS, num_classes=3
    ),
    "multiclass_hinge_loss": of(classification.multiclass_hinge_loss, *MULTICLASS, num_classes=3),
    "multiclass_matthews_corrcoef": of(
        classification.multiclass_matthews_corrcoef, *MULTICLASS, num_classes=3
    ),
    "explained_variance": of(regression.explained_variance, *COLUMNS),
    "explained_variance_column": of(regression.explained_variance, *COLUMN),
    "r2_score": of(regression.r2_score, *COLUMNS),
    "r2_score_column": of(regression.r2_score, *COLUMN),
    "pearson_corrcoef": of(regression.pearson_corrcoef, *COLUMN),
    "concordance_corrcoef": of(regression.concordance_corrcoef, *COLUMN),
    "kendall_rank_corrcoef": of(regression.kendall_rank_corrcoef, *COLUMN),
    "spearman_corrcoef": of(regression.spearman_corrcoef, *COLUMN),
    "tweedie_deviance_score": of(regression.tweedie_deviance_score, positive, negative, power=1),
    "mean_squared_error": of(regression.mean_squared_error, *COLUMN),
    "cosine_similarity": of(regression.cosine_similarity, *COLUMNS),
    "retrieval_average_precision": of(
        functional.retrieval_average_precision, ranked, irrelevant, graded
    ),
    "retrieval_normalized_dcg": of(functional.retrieval_normalized_dcg, graded, irrelevant),
    "retrieval_precision": of(functional.retrieval_precision, ranked, irrelevant, graded),
    "cramers_v": of(functional.cramers_v, categories, two_categories),
    "structural_similarity": of(image.structural_similarity_index_measure, images),
    "peak_signal_noise_ratio": of(functional.peak_signal_noise_ratio, images, data_range=1.0),
    "total_variation": of(functional.total_variation, lambda: images()[:1]),
    "perplexity": of(functional.perplexity, tokens),
}
