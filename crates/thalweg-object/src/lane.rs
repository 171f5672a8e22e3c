//! Lanes: a runtime and connections for one thread that waits.
//!
//! A thread has a lane for as long as it waits for one read. It receives itself what comes on the
//! connections of the lane, so that no other thread has to wake it for each piece.

use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};

use thalweg_io::open::open_files;
use thalweg_io::{Error, Result};
use tokio::runtime::{Builder, Runtime};
use url::Url;

use crate::connection::Connection;

/// The most lanes, if the process may open files enough for them.
const MOST: usize = 256;
/// Files that a lane has open: the two of its runtime, and two connections.
const FILES: usize = 4;
/// Idle connections that a lane keeps: a request that is made a second time has one of its own.
const KEPT: usize = 2;

/// What the requests of a lane share.
#[derive(Debug, Default)]
struct Lane {
    idle: Mutex<Vec<Connection>>,
    /// For requests that are not signed, and for those that are.
    clients: [OnceLock<reqwest::Client>; 2],
}

#[derive(Debug, Default)]
struct Lanes {
    idle: Vec<(Runtime, Arc<Lane>)>,
    /// Lanes that exist, idle or in use.
    count: usize,
}

static LANES: LazyLock<(Mutex<Lanes>, Condvar)> = LazyLock::new(Default::default);

tokio::task_local! {
    static LANE: Arc<Lane>;
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits in this thread for an answer that concerns the object called `name`. If there are as many
/// lanes as the process may have, it waits for one of them first.
///
/// # Errors
/// Those of `wanted`; [`Error::Io`] if the system refuses what a lane needs.
pub(crate) fn block_on<T>(name: &Arc<str>, wanted: impl Future<Output = Result<T>>) -> Result<T> {
    let (runtime, lane) = take(name)?;
    let outcome = runtime.block_on(LANE.scope(lane.clone(), wanted));
    let (lanes, freed) = &*LANES;
    lock(lanes).idle.push((runtime, lane));
    freed.notify_one();
    outcome
}

fn take(name: &Arc<str>) -> Result<(Runtime, Arc<Lane>)> {
    let (lanes, freed) = &*LANES;
    let mut lanes = lock(lanes);
    loop {
        if let Some(idle) = lanes.idle.pop() {
            return Ok(idle);
        }
        if lanes.count == 0 || lanes.count < open_files(MOST * FILES) / FILES {
            match Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => {
                    lanes.count += 1;
                    return Ok((runtime, Arc::default()));
                }
                Err(error) if lanes.count == 0 => {
                    return Err(Error::io(name, "preparing to receive", error));
                }
                // There are others, which will be idle again.
                Err(_) => {}
            }
        }
        lanes = freed.wait(lanes).unwrap_or_else(PoisonError::into_inner);
    }
}

/// Whether this task has a lane.
pub(crate) fn is_here() -> bool {
    LANE.try_with(|_| ()).is_ok()
}

/// The client of this lane for requests that are signed, or for those that are not. Outside of
/// lanes, that is for [uploads](crate::background), the one that they share. `make` makes it if
/// there is none.
pub(crate) fn client<E>(
    is_signed: bool,
    make: impl FnOnce() -> Result<reqwest::Client, E>,
) -> Result<reqwest::Client, E> {
    static SHARED: [OnceLock<reqwest::Client>; 2] = [OnceLock::new(), OnceLock::new()];
    let lane = LANE.try_with(Arc::clone).ok();
    let clients = lane.as_ref().map_or(&SHARED, |lane| &lane.clients);
    let place = &clients[usize::from(is_signed)];
    if let Some(client) = place.get() {
        return Ok(client.clone());
    }
    let client = make()?;
    Ok(place.get_or_init(|| client).clone())
}

/// An idle connection of this lane to the server of a URL.
pub(crate) fn idle_connection(url: &Url) -> Option<Connection> {
    let take = |lane: &Arc<Lane>| {
        let mut idle = lock(&lane.idle);
        idle.retain(Connection::is_alive);
        let at = idle.iter().rposition(|connection| connection.leads_to(url))?;
        Some(idle.remove(at))
    };
    LANE.try_with(take).ok().flatten()
}

/// Keeps a connection for another request, if it is fit for one.
pub(crate) fn keep(mut connection: Connection) {
    if connection.is_free() {
        let _ = LANE.try_with(|lane| {
            let mut idle = lock(&lane.idle);
            idle.push(connection);
            let surplus = idle.len().saturating_sub(KEPT);
            idle.drain(..surplus);
        });
    }
}
