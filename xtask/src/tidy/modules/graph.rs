//! Components of a directed graph, and the shortest cycle in one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Nodes with their targets.
pub(super) type Graph = BTreeMap<usize, BTreeSet<usize>>;

/// Returns the strongly connected components of two or more nodes, each sorted, in the order of their first node.
pub(super) fn components(graph: &Graph) -> Vec<Vec<usize>> {
    let reach: BTreeMap<usize, BTreeSet<usize>> =
        graph.keys().map(|node| (*node, reached(graph, *node))).collect();
    let mut found: Vec<Vec<usize>> = Vec::new();
    for (node, targets) in &reach {
        if found.iter().any(|component| component.contains(node)) {
            continue;
        }
        let back = |other: &usize| reach.get(other).is_some_and(|set| set.contains(node));
        let component: Vec<usize> = targets.iter().copied().filter(back).collect();
        if component.len() > 1 {
            found.push(component);
        }
    }
    found
}

/// Returns the nodes that can be reached from a node in one or more steps.
fn reached(graph: &Graph, from: usize) -> BTreeSet<usize> {
    let mut seen = BTreeSet::new();
    let mut open = vec![from];
    while let Some(node) = open.pop() {
        for target in graph.get(&node).into_iter().flatten() {
            if seen.insert(*target) {
                open.push(*target);
            }
        }
    }
    seen
}

/// Returns the shortest cycle through nodes of a component: each node once, in order.
pub(super) fn shortest_cycle(graph: &Graph, component: &[usize]) -> Vec<usize> {
    let cycles = component.iter().filter_map(|node| cycle_through(graph, component, *node));
    cycles.min_by_key(Vec::len).unwrap_or_default()
}

fn cycle_through(graph: &Graph, component: &[usize], start: usize) -> Option<Vec<usize>> {
    let mut before: BTreeMap<usize, usize> = BTreeMap::new();
    let mut open = VecDeque::from([start]);
    while let Some(node) = open.pop_front() {
        for target in graph.get(&node).into_iter().flatten() {
            if *target == start {
                let mut cycle = vec![node];
                while let Some(previous) = before.get(&cycle[cycle.len() - 1]) {
                    cycle.push(*previous);
                }
                cycle.reverse();
                return Some(cycle);
            }
            if *target != node && component.contains(target) && !before.contains_key(target) {
                before.insert(*target, node);
                open.push_back(*target);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(edges: &[(usize, usize)]) -> Graph {
        let mut graph = Graph::new();
        for (from, to) in edges {
            graph.entry(*from).or_default().insert(*to);
        }
        graph
    }

    #[test]
    fn components_are_what_reaches_itself() {
        let graph = graph(&[(1, 2), (2, 3), (3, 1), (3, 4), (4, 5), (5, 4), (6, 1)]);
        assert_eq!(components(&graph), [vec![1, 2, 3], vec![4, 5]]);
        assert_eq!(components(&Graph::new()), Vec::<Vec<usize>>::new());
    }

    #[test]
    fn the_shortest_cycle_is_shown() {
        let graph = graph(&[(1, 2), (2, 3), (3, 1), (3, 2)]);
        assert_eq!(shortest_cycle(&graph, &[1, 2, 3]), [2, 3]);
    }
}
