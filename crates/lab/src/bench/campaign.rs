//! A plan carried out: several runs side by side, each with its namespaces, and what was measured kept
//! at once.

use std::collections::HashMap;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use pelton_algos::units::BitRate;

use super::plan::{Plan, PlannedRun};
use super::results::{CellResult, Results};
use super::schedule::{self, Load, Schedule};
use super::{Failure, Order, PreparedSet, Runner, floor};

/// The results are written so often while runs go on.
const SAVED_EVERY: Duration = Duration::from_secs(10);

/// How a plan is carried out.
#[derive(Debug, Clone)]
pub struct Conditions {
    /// Runs side by side at most.
    pub jobs: usize,
    /// What they may move together.
    pub budget: BitRate,
    /// When a client is ended; else what its cell deserves.
    pub timeout: Option<Duration>,
    /// Where results are written while runs go on.
    pub out: Option<PathBuf>,
}

/// A plan, what is left of it, and what was measured.
pub struct Campaign<'a> {
    plan: &'a Plan,
    runner: &'a Runner,
    conditions: Conditions,
    runs: Vec<PlannedRun>,
    loads: Vec<Load>,
    began: Instant,
    results: Mutex<Kept>,
    sets: Mutex<Sets>,
}

/// Results, and where in them the cells of the plan stand.
struct Kept {
    results: Results,
    /// By place of the planned cell and of its client.
    places: HashMap<(usize, usize), usize>,
    saved: Instant,
    begun: usize,
    /// Estimated seconds of the runs that are over.
    over: f64,
}

/// Files that lie ready, by place of the planned cell, and the runs that still need them.
#[derive(Default)]
struct Sets {
    ready: HashMap<usize, Arc<PreparedSet>>,
    needed: HashMap<usize, usize>,
}

/// What the workers share.
struct Turn<'a> {
    schedule: Schedule<'a>,
    failed: Option<anyhow::Error>,
}

impl<'a> Campaign<'a> {
    /// Carries out what of `plan` is not among the runs of `results`. A client that failed in an
    /// earlier call gets another chance.
    ///
    /// # Errors
    /// Results of other files than the plan's.
    pub fn new(
        plan: &'a Plan,
        runner: &'a Runner,
        conditions: Conditions,
        mut results: Results,
    ) -> Result<Self> {
        let places = take_places(plan, &mut results)?;
        let is_done = |run: &PlannedRun| {
            let cell = &results.cells[places[&(run.cell, run.client)]];
            cell.runs.iter().any(|done| done.seed == run.seed)
        };
        let runs: Vec<PlannedRun> = plan.runs().into_iter().filter(|run| !is_done(run)).collect();
        let loads: Vec<Load> = runs.iter().map(|run| plan.load(run)).collect();
        let mut sets = Sets::default();
        for run in &runs {
            *sets.needed.entry(run.cell).or_default() += 1;
        }
        let kept = Kept { results, places, saved: Instant::now(), begun: 0, over: 0.0 };
        Ok(Self {
            plan,
            runner,
            conditions,
            runs,
            loads,
            began: Instant::now(),
            results: Mutex::new(kept),
            sets: Mutex::new(sets),
        })
    }

    /// Runs that are left.
    pub fn left(&self) -> usize {
        self.runs.len()
    }

    /// About how long they take.
    pub fn estimate(&self) -> Duration {
        let Conditions { jobs, budget, .. } = self.conditions;
        Duration::from_secs_f64(schedule::duration(&self.loads, jobs, budget))
    }

    /// Carries it out. What was measured until it failed is in the results, too; they are written.
    ///
    /// # Errors
    /// When nobody can go on, or the user wants no more.
    pub fn run(self) -> (Results, Result<()>) {
        let Conditions { jobs, budget, .. } = self.conditions;
        let schedule = Schedule::new(&self.loads, jobs, budget);
        let turn = Mutex::new(Turn { schedule, failed: None });
        let changed = Condvar::new();
        thread::scope(|scope| {
            for slot in 0..jobs.clamp(1, self.runs.len().max(1)) {
                let (this, turn, changed) = (&self, &turn, &changed);
                scope.spawn(move || this.work(slot, turn, changed));
            }
        });
        let failed = turn.into_inner().unwrap_or_else(PoisonError::into_inner).failed;
        let kept = self.results.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut results = kept.results;
        results.group();
        let mut outcome = failed.map_or(Ok(()), Err);
        if let Some(file) = &self.conditions.out
            && let Err(error) = results.save(file)
        {
            outcome = Err(error).with_context(|| format!("can't write {}", file.display()));
        }
        (results, outcome)
    }

    /// Runs what comes next until there is nothing more.
    fn work(&self, slot: usize, turn: &Mutex<Turn<'_>>, changed: &Condvar) {
        let mut now = locked(turn);
        loop {
            if now.failed.is_some() || now.schedule.is_empty() {
                return;
            }
            let Some(index) = now.schedule.start() else {
                now = changed.wait(now).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(now);
            let outcome = self.carry_out(index, slot);
            now = locked(turn);
            now.schedule.finish(index);
            if let Err(error) = outcome {
                // The first tells why; what others say follows from it.
                now.failed.get_or_insert(error);
            }
            changed.notify_all();
        }
    }

    fn carry_out(&self, index: usize, slot: usize) -> Result<()> {
        let run = self.runs[index];
        let cell = &self.plan.cells[run.cell];
        let client = &cell.clients[run.client];
        let set = self.prepared(run.cell)?;
        let place = self.announce(&run);
        let patience =
            || patience(cell.link.spec.rtt(), &locked(&self.results).results.cells[place]);
        let order = Order {
            link_name: &cell.link_name,
            link: &cell.link,
            set: &set,
            client,
            seed: run.seed,
            timeout: self.conditions.timeout.unwrap_or_else(patience),
            slot,
        };
        let outcome = self.runner.run(&order);
        drop(set);
        self.used(run.cell)?;
        let mut kept = locked(&self.results);
        kept.over += self.loads[index].seconds;
        let cell = &mut kept.results.cells[place];
        match outcome {
            Ok((result, command)) => {
                cell.command = command;
                cell.add(result);
            }
            Err(Failure::Client(why)) => {
                let _ = writeln!(io::stderr(), "pelton-lab: {client} failed: {why}");
                cell.failures.push(why);
            }
            Err(Failure::Lab(error)) => return Err(error),
        }
        self.save_now_and_then(&mut kept)
    }

    /// Says what begins; gives its place among the results.
    fn announce(&self, run: &PlannedRun) -> usize {
        let cell = &self.plan.cells[run.cell];
        let mut kept = locked(&self.results);
        kept.begun += 1;
        let (link, set, client) = (&cell.link_name, &cell.set_name, &cell.clients[run.client]);
        let left = self.time_left(kept.over);
        let _ = writeln!(
            io::stderr(),
            "{}/{}: {link}, {set}, {client}{left}",
            kept.begun,
            self.runs.len()
        );
        kept.places[&(run.cell, run.client)]
    }

    /// What remains at the pace so far, where it is worth to be said.
    fn time_left(&self, over: f64) -> String {
        let all: f64 = self.loads.iter().map(|load| load.seconds).sum();
        let left = self.began.elapsed().as_secs_f64() * (all / over - 1.0);
        // Without a run that is over there is no pace.
        let minutes =
            Some((left / 60.0).round()).filter(|minutes| minutes.is_finite() && *minutes >= 1.0);
        minutes.map(|minutes| format!("; {minutes} min left")).unwrap_or_default()
    }

    fn save_now_and_then(&self, kept: &mut Kept) -> Result<()> {
        match &self.conditions.out {
            Some(file) if kept.saved.elapsed() >= SAVED_EVERY => {
                kept.saved = Instant::now();
                let saved = kept.results.save(file);
                saved.with_context(|| format!("can't write {}", file.display()))
            }
            _ => Ok(()),
        }
    }

    /// The files of a cell, written when they are first needed.
    fn prepared(&self, cell: usize) -> Result<Arc<PreparedSet>> {
        let mut sets = locked(&self.sets);
        if let Some(set) = sets.ready.get(&cell) {
            return Ok(Arc::clone(set));
        }
        let planned = &self.plan.cells[cell];
        let files = planned.set.files(self.plan.seed, planned.link.spec.down.peak_rate());
        let name = format!("{cell}-{}", planned.set_name);
        let mut set = self.runner.workspace.prepare(&name, files)?;
        set.name.clone_from(&planned.set_name);
        let set = Arc::new(set);
        sets.ready.insert(cell, Arc::clone(&set));
        Ok(set)
    }

    /// A run of `cell` is over; after the last one its files go.
    fn used(&self, cell: usize) -> Result<()> {
        let mut sets = locked(&self.sets);
        let left = sets.needed.entry(cell).or_insert(1);
        *left -= 1;
        if *left == 0
            && let Some(set) = sets.ready.remove(&cell)
        {
            std::fs::remove_dir_all(&set.root).context("can't remove a set's files")?;
        }
        Ok(())
    }
}

/// Makes a place among `results` for each cell and client of the plan that has none.
fn take_places(plan: &Plan, results: &mut Results) -> Result<HashMap<(usize, usize), usize>> {
    let mut places = HashMap::new();
    for (index, planned) in plan.cells.iter().enumerate() {
        let (bytes, files) = planned.size(plan.seed);
        for (client_index, client) in planned.clients.iter().enumerate() {
            let names = [&planned.link_name, &planned.set_name, &client.name];
            let is_same = |cell: &CellResult| [&cell.link, &cell.set, &cell.client] == names;
            let place = results.cells.iter().position(is_same);
            if let Some(place) = place {
                let cell = &mut results.cells[place];
                if (cell.files, cell.bytes) != (files, bytes.0) {
                    bail!("the results have another set {}: measure anew", planned.set_name);
                }
                cell.failures.clear();
            } else {
                let floor = floor(&planned.link.spec, client.protocol, files, bytes);
                results.cells.push(CellResult {
                    link: planned.link_name.clone(),
                    set: planned.set_name.clone(),
                    client: client.name.clone(),
                    radio: planned.link.radio.name().to_owned(),
                    command: Vec::new(),
                    files,
                    bytes: bytes.0,
                    floor_s: floor.as_secs_f64(),
                    stats: None,
                    runs: Vec::new(),
                    failures: Vec::new(),
                });
            }
            places.insert((index, client_index), place.unwrap_or(results.cells.len() - 1));
        }
    }
    Ok(places)
}

/// What a client may take that opens a connection for each file and uses a tenth of the link.
fn patience(rtt: Duration, cell: &CellResult) -> Duration {
    let round_trips = rtt * 4 * cell.files as u32;
    Duration::from_secs(60) + round_trips + Duration::from_secs_f64(10.0 * cell.floor_s)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
