//! Options that several benchmarks share.

use clap::Args;

#[derive(Args, Clone, Copy, Debug)]
pub(super) struct Rounds {
    /// The number of rounds of each measurement
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) rounds: u32,
    /// Print the results without storing them or writing the page
    #[arg(long)]
    pub(super) dry: bool,
}

/// Rounds with a random order of the subjects in each.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct Windows {
    #[command(flatten)]
    pub(super) rounds: Rounds,
    /// Milliseconds measured per round
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(20..))]
    pub(super) milliseconds: u64,
    /// The seed for the order of the subjects within the rounds; random by default
    #[arg(long)]
    pub(super) seed: Option<u64>,
}
