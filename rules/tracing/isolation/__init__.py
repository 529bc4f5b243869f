"""Code that has to stay Python, as an operator that a graph calls as a whole.

A check that raises, a warning, a line of a log give nothing back: what they do is their
effect. As a `torch.library.custom_op` with an effect they keep it, whatever the backend, with
the exception's own type and text, and the graph does not end at them. Measured with
torch 2.13.0 (eager, aot_eager, inductor; with and without `fullgraph=True` and gradients):
no break, equal exceptions and warnings. Without `register_effect` the backends drop a call
whose result nobody uses.
"""
