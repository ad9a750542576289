//! Calls that are unsafe for reasons a test can answer for: fork, a change of the environment, unlocking a terminal.
#![expect(unsafe_code, reason = "each call has its argument beside it")]

use std::fs::File;
use std::os::fd::AsRawFd;
use std::process::exit;
use std::sync::Arc;

use kvik::cudarc::driver::{CudaContext, PinnedHostSlice};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};

/// Forks, runs `work` in the child, and ends the child with 0; a panic ends it with 101 and its message. A child that
/// takes longer than 30 s is killed. What `work` owns is the child's; the parent forgets it.
pub fn forked(work: impl FnOnce()) -> Forked {
    // SAFETY: the child allocates and takes locks, which POSIX forbids after a fork of a process with threads. glibc,
    // for which this test is written, keeps its allocator usable there; all other locks are the subject of the test.
    match unsafe { fork() }.unwrap() {
        ForkResult::Parent { child } => {
            std::mem::forget(work);
            Forked(child)
        }
        ForkResult::Child => {
            // Not inherited from the parent, and the way out of a child that hangs.
            nix::unistd::alarm::set(30);
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            exit(if done.is_ok() { 0 } else { 101 });
        }
    }
}

/// A forked child that was not waited for yet.
#[derive(Debug)]
#[must_use = "a child must be waited for"]
pub struct Forked(Pid);

impl Forked {
    /// Waits for the child; fails unless it ended with 0.
    #[track_caller]
    pub fn succeeded(self) {
        match waitpid(self.0, None).unwrap() {
            WaitStatus::Exited(_, 0) => {}
            WaitStatus::Signaled(_, nix::sys::signal::Signal::SIGALRM, _) => {
                panic!("the forked child hangs")
            }
            status => panic!("the forked child ended with {status:?}"),
        }
    }
}

/// Pinned memory of cudarc, which hands it out as it finds it.
#[track_caller]
#[must_use]
pub fn pinned(context: &Arc<CudaContext>, len: usize) -> PinnedHostSlice<u8> {
    // SAFETY: the fake driver has it from the kernel, zeroed.
    unsafe { context.alloc_pinned(len) }.unwrap()
}

/// Whether the CPU can read the byte at `address`, and whether the address is in use at all.
#[must_use]
pub fn is_readable(address: usize) -> (bool, bool) {
    let (reader, writer) = nix::unistd::pipe().unwrap();
    // SAFETY: the kernel looks at the byte itself, and answers EFAULT where it cannot be read.
    let written = unsafe { libc::write(writer.as_raw_fd(), address as *const _, 1) };
    drop(reader);
    let page = address - address % 4096;
    let mut resident = [0_u8; 1];
    // SAFETY: mincore touches none of the memory that it is asked about; its answer is one byte for one page.
    let known = unsafe { libc::mincore(page as *mut _, 4096, resident.as_mut_ptr()) };
    (written == 1, known == 0)
}

/// Sets a variable of this process. Only for a process that has no second thread yet.
pub fn set_variable(name: &str, value: &str) {
    // SAFETY: the callers, scenarios of the child binary, run no other thread at that time.
    unsafe { std::env::set_var(name, value) };
}

/// A new terminal: its master side, and the path of the other side.
#[must_use]
pub fn terminal() -> (File, String) {
    let master = File::options()
        .read(true)
        .write(true)
        .open("/dev/ptmx")
        .unwrap();
    let mut locked: libc::c_int = 0;
    // SAFETY: TIOCSPTLCK reads one int through its argument, and `locked` is one.
    let unlocked = unsafe { libc::ioctl(master.as_raw_fd(), libc::TIOCSPTLCK, &raw mut locked) };
    assert_eq!(
        unlocked,
        0,
        "TIOCSPTLCK: {}",
        std::io::Error::last_os_error()
    );
    let mut number: libc::c_int = 0;
    // SAFETY: TIOCGPTN stores one int through its argument, and `number` is one.
    let named = unsafe { libc::ioctl(master.as_raw_fd(), libc::TIOCGPTN, &raw mut number) };
    assert_eq!(named, 0, "TIOCGPTN: {}", std::io::Error::last_os_error());
    (master, format!("/dev/pts/{number}"))
}

/// Has the connection end by a reset when it is closed.
pub fn reset_at_close(connection: &std::net::TcpStream) {
    let linger = libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    // SAFETY: SO_LINGER reads one `linger`, and there is one.
    let set = unsafe {
        libc::setsockopt(
            connection.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            (&raw const linger).cast(),
            size_of::<libc::linger>() as libc::socklen_t,
        )
    };
    assert_eq!(set, 0, "SO_LINGER: {}", std::io::Error::last_os_error());
}

/// Takes a lease on an open file, as file servers do. When somebody else opens it, this process is ended by SIGIO, and the
/// lease with it.
pub fn lease(file: &File) {
    // SAFETY: F_SETLEASE takes an integer and touches no memory of ours.
    let taken = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK) };
    assert_eq!(taken, 0, "F_SETLEASE: {}", std::io::Error::last_os_error());
}

/// Has the kernel answer the system call `number` with `errno`, in this thread and in those it starts from now on.
pub fn forbid(number: libc::c_long, errno: i32) {
    let operation = |code: u32, k: u32, jump_if_not: u8| libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf: jump_if_not,
        k,
    };
    let mut filter = [
        // The first word of `struct seccomp_data` is the number of the call.
        operation(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        operation(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            u32::try_from(number).unwrap(),
            1,
        ),
        operation(
            libc::BPF_RET | libc::BPF_K,
            libc::SECCOMP_RET_ERRNO | errno as u32,
            0,
        ),
        operation(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0),
    ];
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: PR_SET_NO_NEW_PRIVS takes integers and touches no memory.
    let fixed = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    assert_eq!(
        fixed,
        0,
        "no_new_privs: {}",
        std::io::Error::last_os_error()
    );
    // SAFETY: the program and its filter outlive the call, which copies them.
    let set = unsafe {
        libc::prctl(
            libc::PR_SET_SECCOMP,
            libc::SECCOMP_MODE_FILTER,
            &raw const program,
        )
    };
    assert_eq!(set, 0, "seccomp: {}", std::io::Error::last_os_error());
}
