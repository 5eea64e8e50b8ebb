//! Trains a net for MNIST for an epoch, tests it, and saves it.
//!
//!     python frontends/export_mnist.py build
//!     cd frontends/rust
//!     FXFLOW_PJRT_PLUGIN=$(python -m fxflow.export.plugin) cargo run --release --example mnist ../../build
use fxflow::{In, Model, Out, Runtime};

const BATCH: usize = 100;
const PIXELS: usize = 784;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).unwrap_or("build".into());
    let read = |name: &str| std::fs::read(format!("{folder}/{name}.u8"));
    let runtime = Runtime::open(None)?;
    let mut model = Model::load(&runtime, format!("{folder}/mnist.fx"), 0)?;

    let (images, labels) = (read("train-images")?, read("train-labels")?);
    let (mut sum, mut loss) = (0.0, [0f32]);
    for (x, y) in images.chunks_exact(BATCH * PIXELS).zip(labels.chunks_exact(BATCH)) {
        let batch = [In::new("images", &[BATCH, PIXELS], x), In::new("labels", &[BATCH], y)];
        model.call("step", &batch, &mut [Out::new("output.loss", &[], &mut loss)])?;
        sum += f64::from(loss[0]);
    }

    let (unseen, truth) = (read("test-images")?, read("test-labels")?);
    let (mut right, mut digits) = (0, [0i32; BATCH]);
    for (x, y) in unseen.chunks_exact(BATCH * PIXELS).zip(truth.chunks_exact(BATCH)) {
        let images = [In::new("images", &[BATCH, PIXELS], x)];
        model.call("predict", &images, &mut [Out::new("output.digits", &[BATCH], &mut digits)])?;
        right += digits.iter().zip(y).filter(|(&a, &b)| a == i32::from(b)).count();
    }
    println!(
        "loss {:.6}, accuracy {:.4}",
        sum / (labels.len() / BATCH) as f64,
        right as f64 / (truth.len() / BATCH * BATCH) as f64
    );
    model.save(format!("{folder}/trained.fx"))?;
    Ok(())
}
