//! Options that several benches have.

use clap::Args;

#[derive(Args, Clone, Copy, Debug)]
pub(super) struct Rounds {
    /// Rounds of each measurement
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) rounds: u32,
    /// Show what was measured without keeping it or writing the page
    #[arg(long)]
    pub(super) dry: bool,
}

/// Rounds in which the subjects have another random order each.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct Windows {
    #[command(flatten)]
    pub(super) rounds: Rounds,
    /// Milliseconds that are measured in each round
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(20..))]
    pub(super) milliseconds: u64,
    /// Seed of the order of the subjects within the rounds; random by default
    #[arg(long)]
    pub(super) seed: Option<u64>,
}
