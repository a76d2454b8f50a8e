//! Advances the world until a loop has to run, and runs one iteration of that loop. See `loops` for how loops wait.

use event::{EventHandler, Loop};
use gateway::ShardMail;

use crate::kernel::SimulatedKernel;
use crate::lockstep;
use crate::scheduled_event::{Moment, ScheduledEvent};
use crate::world::Shared;

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// An iteration of this loop.
    Turn(usize),
    /// The given time has come.
    Time,
    /// No event is scheduled.
    Rest,
}

/// Advances the world until a loop has to run, or until a time.
pub(crate) fn next(shared: &Shared, until: Option<Moment>) -> Next {
    loop {
        lockstep::deliver_handed(shared);
        let mut world = shared.lock();
        world.call_loops();
        if world.progress.at_rest {
            return Next::Rest;
        }
        match world.time.next(until) {
            Some(ScheduledEvent::Turn(shard)) => {
                if world.has_turn(shard) {
                    return Next::Turn(shard);
                }
            }
            Some(ScheduledEvent::Thread(thread)) => {
                world.act(ScheduledEvent::Thread(thread).actor());
                drop(world);
                lockstep::go_on(shared, thread);
            }
            Some(scheduled_event) => world.execute(scheduled_event),
            None => match until {
                Some(until) => {
                    world.time.now = world.time.now.max(until);
                    return Next::Time;
                }
                None => {
                    world.progress.at_rest = true;
                    return Next::Rest;
                }
            },
        }
    }
}

/// Runs the iteration for which a loop was called; then the loop waits again. Returns false after the loop was stopped.
pub(crate) fn turn<O: EventHandler<Mail = ShardMail>>(
    shared: &Shared,
    shard: usize,
    turning: &mut Loop<SimulatedKernel, ShardMail>,
    owner: &mut O,
) -> Result<bool, String> {
    if !turning.turn(owner, None).map_err(|error| error.to_string())? {
        shared.lock().loop_is_gone(shard);
        return Ok(false);
    }
    fall_asleep(turning, owner)?;
    Ok(true)
}

/// Makes a loop wait that was not called.
pub(crate) fn fall_asleep<O: EventHandler<Mail = ShardMail>>(
    turning: &mut Loop<SimulatedKernel, ShardMail>,
    owner: &mut O,
) -> Result<(), String> {
    match turning.turn(owner, None) {
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(()),
        Err(error) => Err(error.to_string()),
        Ok(_) => Err("a loop turns though nobody called it".to_owned()),
    }
}
