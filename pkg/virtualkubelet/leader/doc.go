// Package leader has one of several virtual kubelets of a node work at a time: the holder of a Lease. The others stand by, with their
// certificates, and look at it often, while its holder writes it as seldom as its terms allow.
//
// The Lease is given back when the work has ended, never before, so that no other replica begins meanwhile. Who cannot renew it ends its
// work before the Lease can be another's. A process that stood still notices that late: the fence around its transports refuses whatever it
// would change once its time is over.
package leader
