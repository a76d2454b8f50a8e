//! Pools that are at home on another shard, and what of them is served here.

use super::{BalancePlan, OwnPlan, PlanError, PoolPlan, Site, WorkersPlan, servers, workers};

/// The servers of a pool that every shard serves, as they are called, with their slots; none for a pool
/// that its home alone serves.
///
/// Servers are whoever connects to them, so each shard can have links of its own. What needs one
/// place stays at home.
pub(crate) fn shared_servers(pool: &settings::Pool) -> Option<Vec<(String, u32)>> {
    let all = pool.servers().filter(|_| !pool.needs_one_place())?;
    let slots = |server| {
        let pool::Member { name, slots, .. } = servers::member(server);
        (name, slots.unwrap_or(all.requests_max))
    };
    Some(all.servers.iter().map(slots).collect())
}

/// What is served here of a pool that is at home elsewhere and shared.
pub(crate) fn branch(pool: settings::Pool, site: Site<'_>) -> Result<PoolPlan, PlanError> {
    let mut plan = super::pool(pool, site)?;
    // Its home looks after its servers, and tells.
    plan.balance.check = None;
    plan.pool.health.checked_first = false;
    plan.pool.health.checked = false;
    plan.workers.branch();
    Ok(plan)
}

/// A pool that its home alone serves: nothing of it runs here.
pub(crate) fn elsewhere(pool: settings::Pool) -> Result<PoolPlan, PlanError> {
    let is_own = |program: &settings::Program| program.dispatch == settings::Dispatch::Session;
    let own = pool.program().is_some_and(is_own);
    let nobody = elastic::Sizing { min: 0, max: 1, spare: 0, ..elastic::Sizing::default() };
    Ok(PoolPlan {
        name: pool.name.clone(),
        pool: pool::Settings { sizing: nobody, ..pool::Settings::default() },
        then: None,
        balance: BalancePlan::default(),
        takes: workers::takes(&pool.worker),
        own: own.then_some(OwnPlan { reset: None, tells_apart: false }),
        is_tagged: pool.program().is_some_and(super::program::is_tagged),
        workers: WorkersPlan::elsewhere(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(more: &str) -> Option<Vec<u32>> {
        let text = format!(
            "[listener.main]\nlisten = \"127.0.0.1:0\"\nprotocol = \"http\"\npool = \"a\"\n\
             [pool.a]\nservers = [\"10.0.0.1:80\", {{ address = \"10.0.0.2:80\", slots = 2 }}]\nserver_requests_max = 7\n{more}"
        );
        let source = settings::Source { name: "test".to_owned(), text };
        let configuration = settings::parse(&source, &|_| None).unwrap();
        let servers = shared_servers(&configuration.pools[0])?;
        Some(servers.into_iter().map(|(_, slots)| slots).collect())
    }

    #[test]
    fn servers_are_shared_unless_something_needs_one_place() {
        let both = || Some(vec![7, 2]);
        assert_eq!(slots(""), both());
        assert_eq!(slots("sticky = { cookie = \"berth\" }"), both());
        assert_eq!(slots("schedule = \"hash\"\nsorry = { line = \"x\" }"), both());
        assert_eq!(slots("slots_max = 3"), None);
        assert_eq!(slots("sticky = { key = \"source\" }"), None);
        assert_eq!(slots("sticky = { cookie = \"JSESSIONID\", mode = \"passive\" }"), None);
    }
}
