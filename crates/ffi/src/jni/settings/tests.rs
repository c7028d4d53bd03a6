use super::*;

fn setting(name: &str, value: &str) -> Setting {
    (name.to_owned(), value.to_owned())
}

fn built(settings: &[(&str, &str)]) -> Result<Client> {
    let settings: Vec<Setting> = settings.iter().map(|(n, v)| setting(n, v)).collect();
    client(&settings, &Arc::default())
}

fn ordered(settings: &[(&str, &str)]) -> Result<Vec<Input>> {
    let settings: Vec<Setting> = settings.iter().map(|(n, v)| setting(n, v)).collect();
    Order::parse(&settings)?.inputs()
}

fn refusal<T>(result: Result<T>) -> String {
    let Err(error) = result else { panic!("it was taken") };
    assert_eq!(error.kind(), ErrorKind::Usage);
    error.message()
}

#[test]
fn every_setting_of_the_builder_is_known() {
    let all = [
        ("policy", "fixed"),
        ("max-files", "4"),
        ("max-streams-per-file", "2"),
        ("max-connections-per-server", "8"),
        ("max-connections", "16"),
        ("min-split-size", "5000000000"),
        ("tries", "3"),
        ("retry-wait-ms", "10"),
        ("timeout-ms", "1000"),
        ("connect-timeout-ms", "1000"),
        ("overwrite", "true"),
        ("user-agent", "app/1"),
        ("header", "X-A: b"),
        ("user", "me:pass:word"),
        ("proxy", "http://127.0.0.1:8080"),
        ("ca-file", "/etc/ca.pem"),
        ("meter", "own"),
        ("meter-name", "phone"),
        ("meter-interval-ms", "100"),
        ("radio", "lte"),
    ];
    assert!(built(&all).is_ok());
}

#[test]
fn what_is_malformed_is_named() {
    assert_eq!(refusal(built(&[("tries", "-1")])), "tries: -1 is out of range");
    assert_eq!(refusal(built(&[("shoe-size", "43")])), "shoe-size is no setting");
    assert_eq!(refusal(built(&[("policy", "lucky")])), "lucky is no policy");
    assert_eq!(refusal(built(&[("user", "me")])), "a user needs a password");
    assert!(refusal(built(&[("radio", "smoke")])).contains("smoke"));
}

#[test]
fn no_message_shows_the_value_of_a_header() {
    for header in ["Authorization: secret\n", "secret", "secret header: x"] {
        assert!(!refusal(built(&[("header", &format!("{header}\u{7}"))])).contains("secret"));
    }
}

#[test]
fn what_belongs_to_one_file_makes_a_specification() {
    let digest = "md5=d41d8cd98f00b204e9800998ecf8427e";
    let inputs = ordered(&[
        ("url", "http://h/a?signature=1"),
        ("name", "b"),
        ("digest", digest),
        ("header", "X-Token: s\u{e9}same"),
    ]);
    let [Input::File(file)] = &inputs.unwrap()[..] else { panic!("one file was meant") };
    assert_eq!(file.name, "b");
    assert_eq!(file.digest.as_ref().unwrap().to_string(), digest);
    assert_eq!(file.headers, [("x-token".to_owned(), "s\u{e9}same".to_owned())]);
}

#[test]
fn urls_alone_stay_what_they_are() {
    let inputs = ordered(&[("url", "http://h/listing/"), ("url", "http://h/a")]).unwrap();
    assert!(inputs.iter().all(|input| matches!(input, Input::Text(_))), "{inputs:?}");
}

#[test]
fn requests_that_contradict_themselves_are_refused() {
    let two = [("url", "http://h/a"), ("url", "http://h/b")];
    assert!(refusal(ordered(&[])).contains("needs a URL"));
    assert!(refusal(ordered(&[two[0], two[1], ("name", "c")])).contains("belongs to one URL"));
    assert!(refusal(ordered(&[("url", "http://h/d/"), ("header", "a: b")])).contains("listing"));
    assert!(refusal(ordered(&[two[0], ("name", "../c")])).contains("../c"));
    assert!(refusal(ordered(&[two[0], ("colour", "red")])).contains("colour"));
}
