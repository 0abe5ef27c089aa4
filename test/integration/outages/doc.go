// Package outages tests what happens while a provider cannot be reached, answers late or is flooded, and afterwards. Its tests run one by one: see
// package world.
package outages
