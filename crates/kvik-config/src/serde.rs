//! Serialized forms.
