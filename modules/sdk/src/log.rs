//! Log lines, which the host passes on under the module's name. Natively they go nowhere.

#[cfg(target_family = "wasm")]
use crate::policy::bindings::aether::base::log as host;

/// A field of a line.
pub type Field<'a> = (&'a str, &'a str);

macro_rules! level {
    ($name:ident, $level:ident, $doc:literal) => {
        #[doc = $doc]
        pub fn $name(message: &str, fields: &[Field<'_>]) {
            #[cfg(target_family = "wasm")]
            {
                let fields: Vec<(String, String)> =
                    fields.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
                host::emit(host::Level::$level, message, &fields);
            }
            #[cfg(not(target_family = "wasm"))]
            let _ = (message, fields);
        }
    };
}

level!(error, Error, "Something is wrong, and somebody should look.");
level!(warn, Warn, "Something is not as it should be.");
level!(info, Info, "Something happened.");
level!(debug, Debug, "For whoever looks for a fault.");
