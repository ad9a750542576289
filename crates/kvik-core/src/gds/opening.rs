//! One change of cuFile's driver: what is called, in which order, and what comes of it. It may take for ever, and so runs on a
//! thread that holds no lock.

use kvik_sys::{BoolParameter, CallError, CuFile, CuFileStatus};

use super::driver::Mode;
use super::refusal::Refusal;

/// What is to be done.
pub(super) struct Opening {
    pub(super) cufile: CuFile,
    /// Whether it is open, and must be closed first.
    pub(super) closes: bool,
    pub(super) opens: Option<Mode>,
    /// Whether it is to be opened all the same if it does not open without its compatible mode.
    pub(super) or_else_compatible: bool,
    pub(super) settings: Settings,
    /// What cuFile was last told about its compatible mode.
    pub(super) compatible: Option<bool>,
}

/// What has come of it.
pub(super) struct Done {
    /// How it is open, if it is.
    pub(super) mode: Option<Mode>,
    pub(super) compatible: Option<bool>,
    pub(super) refused: Option<Refusal>,
    /// Why it cannot be opened without its compatible mode, if that was tried.
    pub(super) not_direct: Option<Refusal>,
}

/// What the program has set in an open driver, sizes in KiB.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    /// Whether it polls, and up to which size.
    pub(crate) poll: Option<(bool, usize)>,
    pub(crate) max_device_cache: Option<usize>,
    pub(crate) max_pinned_memory: Option<usize>,
}

/// Whether this cuFile cannot be told to do without its compatible mode.
pub(super) fn is_old(cufile: &CuFile) -> bool {
    lacks(cufile, PARAMETER)
}

/// Whether it has no such function.
pub(super) fn lacks(cufile: &CuFile, function: &str) -> bool {
    let missing = cufile.unsupported();
    missing.iter().any(|lack| lack.symbol == function)
}

impl Opening {
    /// Carries it out, for a driver that is open in the mode `before`.
    pub(super) fn run(mut self, before: Option<Mode>) -> Done {
        if self.closes
            // SAFETY: nothing is registered and nobody moves bytes: whoever does has a `Use`, and there was none when this began;
            // until it ends, none is given out.
            && let Err(status) = unsafe { self.cufile.driver_close() }
        {
            let refused = Refusal::of_call("cuFileDriverClose", status);
            return self.done(before, Some(refused));
        }
        match self.opens {
            None => self.done(None, None),
            Some(Mode::Compatible) => match self.open_compatible() {
                Ok(()) => self.done(Some(Mode::Compatible), None),
                Err(refusal) => self.done(None, Some(refusal)),
            },
            Some(Mode::Direct) => self.open_direct(),
        }
    }

    fn done(&self, mode: Option<Mode>, refused: Option<Refusal>) -> Done {
        Done {
            mode,
            compatible: self.compatible,
            refused,
            not_direct: None,
        }
    }

    fn open_compatible(&mut self) -> Result<(), Refusal> {
        // Where nobody has forbidden it, cuFile's own settings decide.
        if self.compatible == Some(false) {
            self.allow_compatible(true)?;
        }
        self.open()
    }

    fn open_direct(&mut self) -> Done {
        let opened = match is_old(&self.cufile) {
            true => self.open(),
            false => self.allow_compatible(false).and_then(|()| self.open()),
        };
        let mode = opened.and_then(|()| self.opened_mode());
        match mode {
            Ok(Mode::Compatible) if !is_old(&self.cufile) => {
                let why = "not usable without its compatible mode, which it keeps though it was told not to";
                self.not_direct(Some(Mode::Compatible), Refusal::new(why))
            }
            Ok(mode) => self.done(Some(mode), None),
            Err(refusal) => {
                let reopens = self.or_else_compatible && self.open_compatible().is_ok();
                self.not_direct(reopens.then_some(Mode::Compatible), refusal)
            }
        }
    }

    fn not_direct(&self, mode: Option<Mode>, refusal: Refusal) -> Done {
        Done {
            not_direct: Some(refusal.clone()),
            ..self.done(mode, Some(refusal))
        }
    }

    /// In which mode it has opened, in its own words.
    fn opened_mode(&self) -> Result<Mode, Refusal> {
        let told = self.cufile.driver_get_properties();
        let properties =
            told.map_err(|status| Refusal::of_call("cuFileDriverGetProperties", status));
        let properties = properties.inspect_err(|_| {
            // SAFETY: it was opened just now, and nobody but this thread knows of it.
            let _ = unsafe { self.cufile.driver_close() };
        })?;
        Ok(match properties.allows_compat_mode() {
            true => Mode::Compatible,
            false => Mode::Direct,
        })
    }

    fn open(&self) -> Result<(), Refusal> {
        let opened = self.cufile.driver_open();
        opened.map_err(|status| Refusal::of_call("cuFileDriverOpen", status))?;
        self.settings.tell(&self.cufile);
        Ok(())
    }

    fn allow_compatible(&mut self, allowed: bool) -> Result<(), Refusal> {
        let set = self
            .cufile
            .set_parameter_bool(BoolParameter::ALLOW_COMPAT_MODE, allowed);
        match set {
            Ok(()) => {
                self.compatible = Some(allowed);
                Ok(())
            }
            Err(CallError::Status(status)) if status.op == CuFileStatus::DRIVER_ALREADY_OPEN => {
                let why = "not usable in another mode than the one in which somebody else in this process has its driver open";
                Err(Refusal::new(why).because(status))
            }
            Err(CallError::Status(status)) => {
                Err(Refusal::of_call("cuFileSetParameterBool", status))
            }
            Err(CallError::Unsupported(lack)) => {
                Err(Refusal::new(format!("not usable: {lack}")).because(lack))
            }
        }
    }
}

impl Settings {
    /// A driver that is opened anew has forgotten them. One that took them before takes them again; if not, its own hold.
    fn tell(&self, cufile: &CuFile) {
        let told = [
            self.poll
                .map(|(on, kib)| cufile.driver_set_poll_mode(on, kib)),
            self.max_device_cache
                .map(|kib| cufile.driver_set_max_cache_size(kib)),
            self.max_pinned_memory
                .map(|kib| cufile.driver_set_max_pinned_mem_size(kib)),
        ];
        for status in told.into_iter().flatten().filter_map(Result::err) {
            tracing::warn!(%status, "cuFile's driver does not take a setting again that it took before");
        }
    }
}

const PARAMETER: &str = "cuFileSetParameterBool";
