//! Two agents and more on one node with a real containerd: rolls under load, and everything that breaks them. Nothing is
//! lost, nothing is left, and no call fails.

#![allow(clippy::indexing_slicing, clippy::print_stdout, reason = "what tests call is test code too")]

mod brokenly;
mod commands;
mod frozen;
mod heirs;
mod inflight;
mod killed;
mod past;
mod roll;
mod standby;
mod starved;
mod steps;
mod stopped;
