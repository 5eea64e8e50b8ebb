//! Runs on the file that `FXFLOW_TEST_MODEL` names: `step(state, x: f32[4,3])`.
use std::os::unix::ffi::OsStrExt;

use fxflow::{Error, In, Model, Out, Runtime};

#[test]
fn absent_plugins_and_files() {
    let missing = Runtime::open(Some("/nowhere.so")).err().unwrap();
    assert!(matches!(missing, Error::BadPlugin(_)) && missing.text().contains("/nowhere.so"));
    let wrong = Runtime::open_with(None, &["cpu_device_count"]).err().unwrap();
    assert_eq!(wrong.text(), "option \"cpu_device_count\" is not name=value");
    let runtime = Runtime::open_with(None, &["cpu_device_count=3"]).unwrap();
    assert!(runtime.device_count() == 3 && runtime.platform() == "cpu");
    let absent = Model::load(&runtime, "/nowhere.fx", 0).err().unwrap();
    assert_eq!(absent, Error::BadFile("/nowhere.fx cannot be read: No such file or directory".into()));
}

#[test]
fn calls_and_refusals() {
    let path = std::env::var("FXFLOW_TEST_MODEL").unwrap();
    let runtime = Runtime::open(None).unwrap();
    let mut model = Model::load(&runtime, &path, 0).unwrap();
    assert_eq!(model.functions(), ["step", "swapped"]);
    let input = &model.inputs("step").unwrap()[0];
    assert_eq!((input.text.as_str(), &input.shape[..]), ("f32[4,3]", &[4, 3][..]));
    assert_eq!(model.params().len(), 2);

    let (x, mut y, mut w) = ([1f32; 12], [0f32], [0f32; 3]);
    for _ in 0..3 {
        let inputs = [In::new("x", &[4, 3], &x)];
        model.call("step", &inputs, &mut [Out::new("output", &[], &mut y)]).unwrap();
    }
    model.get_param(&mut Out::new("w", &[3], &mut w)).unwrap();
    assert!(w[0] < 1.0 && w[0] == w[2]);
    model.set_param(&In::new("w", &[3], &[5f32, 6.0, 7.0])).unwrap();
    model.get_param(&mut Out::new("w", &[3], &mut w)).unwrap();
    assert_eq!(w, [5.0, 6.0, 7.0]);

    let refused = |model: &mut Model, input: In| model.call("step", &[input], &mut []).err();
    for (input, text) in [
        (In::new("x", &[4, 4], &[0f32; 16]), "step: x is f32[4,4], expected f32[4,3]"),
        (In::new("x", &[4, 3], &[0i32; 12]), "step: x is i32[4,3], expected f32[4,3]"),
        (In::new("z", &[4, 3], &x), "step has no argument z; it has x"),
    ] {
        assert_eq!(refused(&mut model, input), Some(Error::BadArgument(text.into())));
    }
    let short = refused(&mut model, In::new("x", &[4, 3], &x[..5])).unwrap();
    assert!(short.text().contains("has 12 elements, the slice has 5"));
    let huge = refused(&mut model, In::new::<f32>("x", &[1 << 40, 1 << 40], &[])).unwrap();
    assert!(huge.text().contains("has too many elements, the slice has 0"));
    assert!(Model::load(&runtime, &path, 1 << 32).is_err());
    // Names of files need not be UTF-8, and are not cut off.
    let name = std::ffi::OsStr::from_bytes(b"fxflow-\xff.fx");
    let saved = std::env::temp_dir().join(name);
    model.save(&saved).unwrap();
    assert!(saved.exists() && model.save(std::env::temp_dir().join("a\0b")).is_err());
    std::fs::remove_file(saved).unwrap();
}
