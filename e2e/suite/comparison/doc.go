// Package comparison holds one end-to-end test for each way in which SAP's pod-reloader is known to break, each naming how its
// design fails there. The tests run on a real control plane with the program as shipped.
package comparison
