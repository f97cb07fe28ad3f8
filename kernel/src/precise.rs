//! Products that are rounded before something is added to them.
//!
//! A device compiler may fuse `a * b + c` into one operation with one rounding. [`Recording::precise`] first
//! adds -0.0 to each product. `x + (-0.0)` is `x`, but the compiler cannot remove this addition, because -0.0
//! is a parameter of the launch. If the compiler fuses the product with it, the fused operation rounds the
//! product alone.

use crate::{
    number::{Kind, Number as _},
    operation::{Binary, Id, Operation, What},
    recording::{Body, Recording},
};

impl Recording {
    /// The same kernel, in which products of floats are rounded by themselves on every device, as they are on
    /// the processor. On the processor it has the same results.
    pub fn precise(&self) -> Self {
        let mut precise = self.clone();
        let operations = std::mem::take(&mut precise.body.operations);
        let zeros = [Kind::F32, Kind::F64].map(|kind| {
            let has_products = operations.iter().any(|operation| product(operation) == Some(kind));
            has_products.then(|| precise.minus_zero(kind))
        });
        let mut new: Vec<Id> = Vec::with_capacity(operations.len());
        for mut operation in operations {
            let inputs = operation.what.inputs_mut().into_iter().flatten();
            inputs.for_each(|input| *input = new[*input as usize]);
            let kind = operation.kind;
            let zero = product(&operation).and_then(|kind| zeros[usize::from(kind == Kind::F64)]);
            let mut id = precise.push(operation);
            if let Some(zero) = zero {
                id = precise.push(Operation { what: What::Binary(Binary::Add, id, zero), kind });
            }
            new.push(id);
        }
        let Body { folds, stores, .. } = &mut precise.body;
        folds.iter_mut().for_each(|fold| fold.rename(&new));
        stores.iter_mut().for_each(|(_, id)| *id = new[*id as usize]);
        precise
    }

    fn push(&mut self, operation: Operation) -> Id {
        self.body.operations.push(operation);
        self.body.operations.len() as Id - 1
    }

    /// Adds -0.0 as a literal, whose value is a parameter of the launch.
    fn minus_zero(&mut self, kind: Kind) -> Id {
        let value = if kind == Kind::F64 { (-0.0_f64).scalar() } else { (-0.0_f32).scalar() };
        self.parameters.push(value);
        let number = self.parameters.len() as u32 - 1;
        self.push(Operation { what: What::Parameter(number), kind })
    }
}

/// The type of a product of floats.
fn product(operation: &Operation) -> Option<Kind> {
    let is_product = matches!(operation.what, What::Binary(Binary::Mul, ..));
    (is_product && matches!(operation.kind, Kind::F32 | Kind::F64)).then_some(operation.kind)
}
