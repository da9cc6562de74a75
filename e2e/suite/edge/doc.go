// Package edge holds end-to-end tests of what is unusual and must work all the same: large, odd and wrong input, other
// writers, limited scopes and permissions, and outages. It also holds those of alerts, of the guard, and of the commands why and
// check. They run on a real control plane with the program as shipped.
package edge
