//! Decisions about ADD, DEL, CHECK, GC, tombstones and the sweep, without I/O.
