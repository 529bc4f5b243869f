"""Rules for code that `torch.jit.script` compiles."""
