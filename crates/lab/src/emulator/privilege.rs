//! Becoming someone who may make network namespaces.

use std::fs;
use std::io;

use nix::sched::{CloneFlags, unshare};

use super::EmulatorError;

/// Makes sure that this process may make network namespaces: as root it does nothing, else it goes
/// into a user namespace, in which it is root. To be called before the process has a second thread:
/// the kernel lets only single-threaded processes change their user namespace.
///
/// # Errors
/// [`EmulatorError::NoPrivilege`].
pub fn become_able() -> Result<(), EmulatorError> {
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    if user.is_root() {
        return Ok(());
    }
    enter_user_namespace(user.as_raw(), group.as_raw()).map_err(EmulatorError::NoPrivilege)
}

fn enter_user_namespace(user: u32, group: u32) -> io::Result<()> {
    unshare(CloneFlags::CLONE_NEWUSER)?;
    // user_namespaces(7): a group may be mapped without privileges once setgroups is denied.
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("0 {group} 1"))
}
