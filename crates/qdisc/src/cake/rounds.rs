//! Whose turn it is: lists of new, old and decaying flows, and how many of each there are.
//!
//! A flow is in one list at most, and leaves it from anywhere; each step takes the same time however many there are.
use super::flow::Standing;
use super::hash::QUEUES;
use alloc::vec::Vec;

/// The lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum List {
    New,
    Old,
    Decaying,
}

/// No flow.
const NOBODY: u16 = u16::MAX;

/// First and last of a list, or the neighbours of a flow in its list.
#[derive(Clone, Copy, Debug)]
struct Pair {
    before: u16,
    behind: u16,
}

impl Pair {
    const NOBODY: Pair = Pair { before: NOBODY, behind: NOBODY };
}

/// The flows of a tin in the order of their turns.
#[derive(Clone, Debug)]
pub(super) struct Rounds {
    neighbours: Vec<Pair>,
    /// Of each list the last and the first: as if it were a ring in which the list itself stands between them.
    ends: [Pair; 3],
    sparse_flows: u32,
    bulk_flows: u32,
    decaying_flows: u32,
}

impl Rounds {
    pub(super) fn new() -> Rounds {
        Rounds {
            neighbours: vec![Pair::NOBODY; QUEUES],
            ends: [Pair::NOBODY; 3],
            sparse_flows: 0,
            bulk_flows: 0,
            decaying_flows: 0,
        }
    }

    pub(super) fn sparse_flows(&self) -> u32 {
        self.sparse_flows
    }

    pub(super) fn bulk_flows(&self) -> u32 {
        self.bulk_flows
    }

    pub(super) fn decaying_flows(&self) -> u32 {
        self.decaying_flows
    }

    /// Does a flow that has or may have packets wait for its turn?
    pub(super) fn has_work(&self) -> bool {
        self.sparse_flows + self.bulk_flows > 0
    }

    /// Takes out the flow whose turn it is: at first one that decays, then the new ones, then the old ones.
    pub(super) fn pop(&mut self, is_first: bool) -> Option<u16> {
        let order = match is_first {
            true => [List::Decaying, List::New, List::Old],
            false => [List::New, List::Old, List::Decaying],
        };
        let (queue, list) = order.into_iter().find_map(|list| Some((self.front(list)?, list)))?;
        self.remove(list, queue);
        Some(queue)
    }

    /// Puts a flow back where it was taken from, since it keeps its turn.
    pub(super) fn keep(&mut self, queue: u16, standing: Standing) {
        let list = match standing {
            Standing::Sparse => List::New,
            Standing::Decaying => List::Decaying,
            Standing::None | Standing::SparseWait | Standing::Bulk => List::Old,
        };
        let front = self.front(list).unwrap_or(NOBODY);
        self.insert(list, queue, Pair { before: NOBODY, behind: front });
    }

    /// A flow that used up its quantum goes to the end of the old ones.
    pub(super) fn requeue(&mut self, queue: u16) {
        self.push(List::Old, queue);
    }

    /// A flow has become empty and is remembered.
    pub(super) fn decay(&mut self, queue: u16) {
        self.push(List::Decaying, queue);
    }

    /// A flow that was forgotten, or is about to be, begins.
    pub(super) fn begin(&mut self, queue: u16, from: Standing) {
        if from == Standing::Decaying {
            self.remove(List::Decaying, queue);
        }
        self.push(List::New, queue);
    }

    /// Counts a flow where it stands now instead of where it stood.
    pub(super) fn recount(&mut self, from: Standing, to: Standing) {
        if let Some(count) = self.count_of(from) {
            *count = count.saturating_sub(1);
        }
        if let Some(count) = self.count_of(to) {
            *count += 1;
        }
    }

    fn count_of(&mut self, standing: Standing) -> Option<&mut u32> {
        match standing {
            Standing::None => None,
            Standing::Sparse | Standing::SparseWait => Some(&mut self.sparse_flows),
            Standing::Bulk => Some(&mut self.bulk_flows),
            Standing::Decaying => Some(&mut self.decaying_flows),
        }
    }

    fn front(&self, list: List) -> Option<u16> {
        Some(self.ends[list as usize].behind).filter(|front| *front != NOBODY)
    }

    fn push(&mut self, list: List, queue: u16) {
        let last = self.ends[list as usize].before;
        self.insert(list, queue, Pair { before: last, behind: NOBODY });
    }

    fn insert(&mut self, list: List, queue: u16, between: Pair) {
        *self.pair(list, queue) = between;
        self.pair(list, between.before).behind = queue;
        self.pair(list, between.behind).before = queue;
    }

    fn remove(&mut self, list: List, queue: u16) {
        let between = core::mem::replace(self.pair(list, queue), Pair::NOBODY);
        self.pair(list, between.before).behind = between.behind;
        self.pair(list, between.behind).before = between.before;
    }

    /// The neighbours of a flow; of nobody the ends of the list.
    fn pair(&mut self, list: List, queue: u16) -> &mut Pair {
        match self.neighbours.get_mut(usize::from(queue)) {
            Some(pair) => pair,
            None => &mut self.ends[list as usize],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(rounds: &mut Rounds, is_first: bool) -> Vec<u16> {
        core::iter::from_fn(|| rounds.pop(is_first)).collect()
    }

    #[test]
    fn new_flows_go_before_old_ones_and_one_that_decays_is_looked_at_first() {
        let mut rounds = Rounds::new();
        for (queue, decays) in [(1, true), (2, false), (3, true), (4, false)] {
            if decays { rounds.decay(queue) } else { rounds.requeue(queue) }
        }
        rounds.begin(5, Standing::None);
        assert_eq!(all(&mut rounds.clone(), true), [1, 3, 5, 2, 4]);
        assert_eq!(all(&mut rounds, false), [5, 2, 4, 1, 3]);
        assert_eq!(all(&mut rounds, true), []);
    }

    #[test]
    fn a_flow_that_decays_begins_anew_from_anywhere_in_its_list() {
        for queue in [1, 2, 3] {
            let mut rounds = Rounds::new();
            [1, 2, 3].into_iter().for_each(|queue| rounds.decay(queue));
            rounds.begin(queue, Standing::Decaying);
            let others: Vec<u16> = [1, 2, 3].into_iter().filter(|other| *other != queue).collect();
            assert_eq!(all(&mut rounds, true), [&others[..], &[queue]].concat());
        }
    }

    #[test]
    fn who_keeps_a_turn_is_the_first_again() {
        let mut rounds = Rounds::new();
        [1, 2, 3].into_iter().for_each(|queue| rounds.requeue(queue));
        let first = rounds.pop(false).unwrap();
        rounds.keep(first, Standing::Bulk);
        assert_eq!(rounds.pop(false), Some(1));
        rounds.requeue(1);
        assert_eq!(all(&mut rounds, false), [2, 3, 1]);
    }
}
