// The world of main.rs in ns-3: clients download over the line of one server's card, each by a path of its own.
//
// bottleneck FLOWS BYTES: prints packets that went on a line, the processor time of it all in seconds, and the virtual time.
// Packets cross one line, as in ours, without the second hop that a router of ns-3's would be: it costs ns-3 no more than must be.
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/traffic-control-module.h"
#include <ctime>
#include <iostream>
#include <string>
#include <unordered_map>

using namespace ns3;

// Brings a frame to whom it is addressed; ns-3's own gives it to everybody. A broadcast (ARP) still goes to all.
class Star : public SimpleChannel
{
  public:
    void Add(Ptr<SimpleNetDevice> device) override
    {
        SimpleChannel::Add(device);
        m_devices[Key(Mac48Address::ConvertFrom(device->GetAddress()))] = device;
    }

    void Send(Ptr<Packet> packet,
              uint16_t protocol,
              Mac48Address to,
              Mac48Address from,
              Ptr<SimpleNetDevice> sender) override
    {
        auto device = m_devices.find(Key(to));
        if (device == m_devices.end())
        {
            return SimpleChannel::Send(packet, protocol, to, from, sender);
        }
        m_packets++;
        Simulator::ScheduleWithContext(device->second->GetNode()->GetId(),
                                       m_delay,
                                       &SimpleNetDevice::Receive,
                                       PeekPointer(device->second),
                                       packet,
                                       protocol,
                                       to,
                                       from);
    }

    uint64_t m_packets = 0;

  private:
    static uint64_t Key(Mac48Address address)
    {
        uint8_t bytes[8] = {};
        address.CopyTo(bytes);
        return *reinterpret_cast<uint64_t*>(bytes);
    }

    Time m_delay = MilliSeconds(5);
    std::unordered_map<uint64_t, Ptr<SimpleNetDevice>> m_devices;
};

// Tells an interface where a neighbour is, so that a thousand hosts need not ask each other.
void
Acquaint(std::pair<Ptr<Ipv4>, uint32_t> interface, Ptr<NetDevice> neighbour, Ipv4Address address)
{
    auto protocol = interface.first->GetObject<Ipv4L3Protocol>();
    auto entry = protocol->GetInterface(interface.second)->GetArpCache()->Add(address);
    entry->SetMacAddress(neighbour->GetAddress());
    entry->MarkPermanent();
}

int
main(int argc, char** argv)
{
    if (argc != 3)
    {
        std::cerr << "bottleneck FLOWS BYTES" << std::endl;
        return 2;
    }
    const auto flows = std::stoul(argv[1]);
    const auto bytes = std::stoul(argv[2]);
    const auto begun = std::clock();

    // Segments of 1448 bytes with timestamps, a first window of ten, a delayed acknowledgement for every second segment; buffers as
    // large as those of ours may become.
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpCubic::GetTypeId()));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(4'194'304));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(6'291'456));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));

    NodeContainer server(1);
    NodeContainer clients(flows);
    auto channel = CreateObject<Star>();

    SimpleNetDeviceHelper ring;
    ring.SetDeviceAttribute("DataRate", DataRateValue(DataRate("10Gbps")));
    ring.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("256p"));
    auto devices = ring.Install(server, channel);
    SimpleNetDeviceHelper direct;
    direct.DisableFlowControl();
    direct.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("10000p"));
    devices.Add(direct.Install(clients, channel));

    InternetStackHelper internet;
    internet.SetIpv6StackInstall(false);
    internet.Install(server);
    internet.Install(clients);
    TrafficControlHelper discipline;
    discipline.SetRootQueueDisc("ns3::PfifoFastQueueDisc", "MaxSize", StringValue("10000p"));
    discipline.Install(devices.Get(0));
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.0.0");
    auto interfaces = addresses.Assign(devices);
    for (unsigned long flow = 0; flow < flows; flow++)
    {
        Acquaint(interfaces.Get(0), devices.Get(flow + 1), interfaces.GetAddress(flow + 1));
        Acquaint(interfaces.Get(flow + 1), devices.Get(0), interfaces.GetAddress(0));
    }

    PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 80));
    auto sinks = sink.Install(clients);
    for (unsigned long flow = 0; flow < flows; flow++)
    {
        BulkSendHelper source("ns3::TcpSocketFactory",
                              InetSocketAddress(interfaces.GetAddress(flow + 1), 80));
        source.SetAttribute("SendSize", UintegerValue(50'000));
        source.SetAttribute("MaxBytes", UintegerValue(bytes / flows));
        source.Install(server);
    }
    Simulator::Stop(Seconds(600));

    Simulator::Run();

    uint64_t arrived = 0;
    for (auto application = sinks.Begin(); application != sinks.End(); ++application)
    {
        arrived += DynamicCast<PacketSink>(*application)->GetTotalRx();
    }
    const double spent = double(std::clock() - begun) / CLOCKS_PER_SEC;
    if (arrived != bytes / flows * flows)
    {
        std::cerr << arrived << " bytes arrived" << std::endl;
        return 1;
    }
    std::cout << channel->m_packets << " " << spent << std::endl;
    Simulator::Destroy();
    return 0;
}
