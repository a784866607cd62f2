//! Saving and reading checkpoints: the rules of `paraph_graph::Checkpoints`.
