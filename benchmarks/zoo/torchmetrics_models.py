"""Functions of torchmetrics."""
import torch
import torchmetrics.functional as functional
from torchmetrics.functional import classification, image, nominal, regression, retrieval, text
from functools import partial
from zoo import Model

def binary(): return (torch.randn(12), torch.tensor([0, 1] * 6))
def multiclass(): return (torch.randn(12, 3), torch.tensor([0, 1, 2] * 4))
def labels(): return (torch.randint(0, 2, (12,)), torch.tensor([0, 1] * 6))
def columns(): return (torch.randn(12, 2), torch.randn(12, 2))
def column(): return (torch.randn(12), torch.randn(12))
def positive(): return (torch.rand(12) + 0.1, torch.rand(12) + 0.1)
def ranked(): return (torch.rand(8), torch.tensor([0, 1] * 4))
def graded(): return (torch.rand(8), torch.randint(0, 4, (8,)))
def categories(): return (torch.randint(0, 3, (24,)), torch.randint(0, 3, (24,)))
def images(): return (torch.rand(2, 3, 24, 24), torch.rand(2, 3, 24, 24))
def tokens(): return (torch.randn(2, 6, 8), torch.randint(0, 8, (2, 6)))

def of(function, inputs, **options):
    return Model(lambda: partial(function, **options) if options else function, inputs)

MODELS = {
    "binary_accuracy": of(classification.binary_accuracy, binary),
    "binary_stat_scores": of(classification.binary_stat_scores, labels),
    "binary_auroc": of(classification.binary_auroc, binary),
    "binary_average_precision": of(classification.binary_average_precision, binary),
    "binary_precision_recall_curve": of(classification.binary_precision_recall_curve, binary),
    "binary_roc": of(classification.binary_roc, binary),
    "binary_confusion_matrix": of(classification.binary_confusion_matrix, binary),
    "binary_matthews_corrcoef": of(classification.binary_matthews_corrcoef, binary),
    "binary_hinge_loss": of(classification.binary_hinge_loss, binary),
    "multiclass_accuracy": of(classification.multiclass_accuracy, multiclass, num_classes=3),
    "multiclass_auroc": of(classification.multiclass_auroc, multiclass, num_classes=3),
    "multiclass_average_precision": of(classification.multiclass_average_precision, multiclass, num_classes=3),
    "multiclass_confusion_matrix": of(classification.multiclass_confusion_matrix, multiclass, num_classes=3),
    "multiclass_hinge_loss": of(classification.multiclass_hinge_loss, multiclass, num_classes=3),
    "multiclass_matthews_corrcoef": of(classification.multiclass_matthews_corrcoef, multiclass, num_classes=3),
    "explained_variance": of(regression.explained_variance, columns),
    "r2_score": of(regression.r2_score, columns),
    "explained_variance_column": of(regression.explained_variance, column),
    "r2_score_column": of(regression.r2_score, column),
    "pearson_corrcoef": of(regression.pearson_corrcoef, column),
    "concordance_corrcoef": of(regression.concordance_corrcoef, column),
    "kendall_rank_corrcoef": of(regression.kendall_rank_corrcoef, column),
    "spearman_corrcoef": of(regression.spearman_corrcoef, column),
    "tweedie_deviance_score": of(regression.tweedie_deviance_score, positive, power=1),
    "mean_squared_error": of(regression.mean_squared_error, column),
    "retrieval_average_precision": of(functional.retrieval_average_precision, ranked),
    "retrieval_normalized_dcg": of(functional.retrieval_normalized_dcg, graded),
    "retrieval_precision": of(functional.retrieval_precision, ranked),
    "cramers_v": of(functional.cramers_v, categories),
    "structural_similarity": of(image.structural_similarity_index_measure, images),
    "peak_signal_noise_ratio": of(functional.peak_signal_noise_ratio, images, data_range=1.0),
    "total_variation": of(functional.total_variation, lambda: images()[:1]),
    "perplexity": of(functional.perplexity, tokens),
    "cosine_similarity": of(regression.cosine_similarity, columns),
}
