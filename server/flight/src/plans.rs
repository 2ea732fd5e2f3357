//! Plans between GetFlightInfo and DoGet, so that the usual client does not pay for planning twice. Losing one costs time only: the ticket
//! says how to make it again.

use std::collections::VecDeque;

use asof_query::QueryPlan;
use parking_lot::Mutex;

/// Most plans kept; the oldest go first.
const MOST: usize = 128;

/// The newest plans whose rows were not fetched yet.
#[derive(Debug, Default)]
pub struct Plans {
    newest_last: Mutex<VecDeque<(String, QueryPlan)>>,
}

impl Plans {
    /// Keeps a plan under its ticket's id.
    pub fn keep(&self, id: String, plan: QueryPlan) {
        let mut plans = self.newest_last.lock();
        if plans.len() >= MOST {
            plans.pop_front();
        }
        plans.push_back((id, plan));
    }

    /// Takes it out: a second fetch plans anew, since a plan keeps state of its run.
    pub fn take(&self, id: &str) -> Option<QueryPlan> {
        let mut plans = self.newest_last.lock();
        let at = plans.iter().rposition(|(kept, _)| kept == id)?;
        plans.remove(at).map(|(_, plan)| plan)
    }
}
