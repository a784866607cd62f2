//! Opening a store by its address.
