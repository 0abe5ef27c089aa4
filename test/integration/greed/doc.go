// Package greed tests what one consumer can make a provider keep, watch and work: with what it has a right to ask, and with what is refused.
// What processes use is measured, so its tests run one by one: see package world.
package greed
