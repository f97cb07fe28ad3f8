//! The promises hold on devices that fail, and when the power does. [`device`] is such a device. [`faults`]
//! are errors of it, [`order`] is the order of its operations, and [`power`] simulates power failures and
//! kills.

mod device;
mod faults;
mod order;
mod power;
