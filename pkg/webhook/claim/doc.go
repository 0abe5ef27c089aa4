// Package claim is the admission, at the provider, of what class the claims of consumers have.
//
// A claim whose class has no StorageClass gets no new volume, but one that an administrator made for somebody's claim of that class.
// Which StorageClasses there are a policy of the API server cannot look up; everything else about claims is said by policy
// liqo-consumer-objects. Only requests of consumers come here, and only new claims: the policy lets nobody change the class.
package claim
