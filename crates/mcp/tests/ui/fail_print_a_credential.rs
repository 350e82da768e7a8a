use gate::identity::Credential;

fn print(shown: &Credential<'_>) -> String {
    shown.to_string()
}

fn main() {
    let _ = print;
}
