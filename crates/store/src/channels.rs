//! Which pieces make up the channels of a checkpoint.
