use gate::identity::{Authenticate, Credential};

fn is_known(who: &dyn Authenticate, text: &str) -> bool {
    who.identify(&Credential::bearer(text), 0).is_ok()
}

fn main() {
    let _ = is_known;
}
