//! stub
use crate::shell::{Failure, Workspace};
use clap::Args;
#[derive(Args, Debug)]
pub(crate) struct BenchArguments {}
pub(crate) fn run(_: &Workspace, _: &BenchArguments) -> Result<(), Failure> {
    Ok(())
}
