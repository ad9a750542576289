//! Slabs are lent, come back, are bounded, and leave when nobody wants them.
