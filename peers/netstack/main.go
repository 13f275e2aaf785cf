// Two of gVisor's netstacks in one process: `exchange COUNT AT_ONCE REQUEST RESPONSE`, or
// `bulk SECONDS`. Prints the CPU time as JSON. `cargo xtask peers` starts it.
package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/pipe"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
)

const (
	nic    = 1
	block  = 256 << 10
	warmUp = 4 << 20
)

var server = tcpip.FullAddress{NIC: nic, Addr: tcpip.AddrFrom4([4]byte{10, 80, 0, 2}), Port: 7000}

func main() {
	switch {
	case len(os.Args) == 6 && os.Args[1] == "exchange":
		exchange(number(2), number(3), number(4), number(5))
	case len(os.Args) == 3 && os.Args[1] == "bulk":
		seconds, err := strconv.ParseFloat(os.Args[2], 64)
		must(err)
		bulk(time.Duration(seconds * float64(time.Second)))
	default:
		panic("usage: exchange COUNT AT_ONCE REQUEST RESPONSE | bulk SECONDS")
	}
}

func exchange(count, atOnce, request, response int) {
	here, there := pair()
	listener, err := gonet.ListenTCP(there, server, ipv4.ProtocolNumber)
	must(err)
	go func() {
		for {
			conn, err := listener.Accept()
			must(err)
			go answer(conn, request, response)
		}
	}()
	run := func(count int) {
		var all sync.WaitGroup
		for client := range atOnce {
			all.Go(func() {
				for i := client; i < count; i += atOnce {
					ask(here, request, response)
				}
			})
		}
		all.Wait()
	}
	run(count/10 + 1)
	before, begun := packets(here, there), cpu()
	run(count)
	spent := cpu() - begun
	sent := float64(packets(here, there) - before)
	fmt.Printf("{\"cpu_us_per_xchg\":%g,\"pkts_per_xchg\":%g}\n", spent*1e6/float64(count), sent/float64(count))
}

func ask(here *stack.Stack, request, response int) {
	conn, err := gonet.DialTCP(here, server, ipv4.ProtocolNumber)
	must(err)
	_, err = conn.Write(make([]byte, request))
	must(err)
	_, err = io.ReadFull(conn, make([]byte, response))
	must(err)
	must(conn.CloseWrite())
	if rest, err := io.Copy(io.Discard, conn); rest != 0 || err != nil {
		panic(fmt.Sprintf("%d bytes after the response, %v", rest, err))
	}
	must(conn.Close())
}

func answer(conn io.ReadWriteCloser, request, response int) {
	_, err := io.ReadFull(conn, make([]byte, request))
	must(err)
	_, err = conn.Write(make([]byte, response))
	must(err)
	_, err = io.Copy(io.Discard, conn)
	must(err)
	must(conn.Close())
}

func bulk(duration time.Duration) {
	here, there := pair()
	listener, err := gonet.ListenTCP(there, server, ipv4.ProtocolNumber)
	must(err)
	go func() {
		conn, err := gonet.DialTCP(here, server, ipv4.ProtocolNumber)
		must(err)
		for bytes := make([]byte, block); ; {
			_, err := conn.Write(bytes)
			must(err)
		}
	}()
	conn, err := listener.Accept()
	must(err)
	bytes := make([]byte, block)
	read := func() float64 {
		count, err := conn.Read(bytes)
		must(err)
		return float64(count)
	}
	for received := 0.0; received < warmUp; {
		received += read()
	}
	received, begun, end := 0.0, cpu(), time.Now().Add(duration)
	for time.Now().Before(end) {
		received += read()
	}
	fmt.Printf("{\"cpu_s_per_gb\":%g}\n", (cpu()-begun)*1e9/received)
}

// pair returns two stacks with netstack's own defaults (CUBIC, SACK, buffers of 1 MiB), joined by
// its own in-memory link.
func pair() (*stack.Stack, *stack.Stack) {
	left, right := pipe.New("\x02\x00\x00\x00\x00\x01", "\x02\x00\x00\x00\x00\x02", 1500)
	return host(left, tcpip.AddrFrom4([4]byte{10, 80, 0, 1})), host(right, server.Addr)
}

func host(link stack.LinkEndpoint, address tcpip.Address) *stack.Stack {
	host := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocolCUBIC},
	})
	refused(host.CreateNIC(nic, link))
	refused(host.AddProtocolAddress(nic, tcpip.ProtocolAddress{
		Protocol:          ipv4.ProtocolNumber,
		AddressWithPrefix: tcpip.AddressWithPrefix{Address: address, PrefixLen: 24},
	}, stack.AddressProperties{}))
	host.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: nic}})
	return host
}

func packets(stacks ...*stack.Stack) (sent uint64) {
	for _, host := range stacks {
		sent += host.Stats().IP.PacketsSent.Value()
	}
	return sent
}

// cpu returns the CPU time of all threads, in seconds.
func cpu() float64 {
	var usage syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}

func number(at int) int {
	number, err := strconv.Atoi(os.Args[at])
	must(err)
	return number
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func refused(err tcpip.Error) {
	if err != nil {
		panic(err)
	}
}
