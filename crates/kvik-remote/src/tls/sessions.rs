//! What is kept of TLS sessions, so that the next connection takes less time. Asking for it is how TLS begins, which is
//! noted.

use std::sync::Arc;

use rustls::NamedGroup;
use rustls::client::{
    ClientSessionMemoryCache, ClientSessionStore, Resumption, Tls12ClientSessionValue,
    Tls13ClientSessionValue,
};
use rustls::pki_types::ServerName;

use crate::transport::note_tls;

/// Sessions of some hundred servers, in memory.
pub(super) fn sessions() -> Resumption {
    Resumption::store(Arc::new(Sessions(ClientSessionMemoryCache::new(SERVERS))))
}

#[derive(Debug)]
struct Sessions(ClientSessionMemoryCache);

impl ClientSessionStore for Sessions {
    fn set_kx_hint(&self, server: ServerName<'static>, group: NamedGroup) {
        self.0.set_kx_hint(server, group);
    }

    fn kx_hint(&self, server: &ServerName<'_>) -> Option<NamedGroup> {
        // The first thing that a handshake wants to know.
        note_tls();
        self.0.kx_hint(server)
    }

    fn set_tls12_session(&self, server: ServerName<'static>, session: Tls12ClientSessionValue) {
        self.0.set_tls12_session(server, session);
    }

    fn tls12_session(&self, server: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.0.tls12_session(server)
    }

    fn remove_tls12_session(&self, server: &ServerName<'static>) {
        self.0.remove_tls12_session(server);
    }

    fn insert_tls13_ticket(&self, server: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        self.0.insert_tls13_ticket(server, ticket);
    }

    fn take_tls13_ticket(&self, server: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.0.take_tls13_ticket(server)
    }
}

// As many as rustls keeps by itself.
const SERVERS: usize = 256;
