/** What is done to the cluster, and undone. */
import type { Cluster, Member } from "./_postgresql.ts";
import type { Servers } from "./_servers.ts";

export interface Fault {
  readonly name: string;
  /** Full runs: how often. */
  readonly times: number;
  readonly isQuick?: boolean;
  /** Resolves when it is over and everything runs again, or is about to. */
  readonly make: (cluster: Cluster, servers: Servers) => Promise<void>;
}

/** The process of PostgreSQL to which all others belong. */
const postmaster = ({ folder }: Member): string => `$(head -1 ${folder}/data/postmaster.pid)`;

function sh({ host }: Pick<Member, "host">, script: string): void {
  const { code, stderr } = host.run(["sh", "-c", script]);
  if (code !== 0) throw new Error(`${script}: ${stderr}`);
}

async function leaderOf({ members }: Cluster): Promise<Member> {
  for (const member of members) {
    const url = `http://${member.host.address}:2379/v3/maintenance/status`;
    const answer = await fetch(url, { method: "POST", body: "{}" });
    const { header, leader } = (await answer.json()) as {
      header: { member_id: string };
      leader: string;
    };
    if (header.member_id === leader) return member;
  }
  throw new Error("etcd has no leader");
}

const nodeOf = ({ nodes }: Servers) => {
  const node = nodes[Math.floor(Math.random() * nodes.length)];
  if (node === undefined) throw new Error("there are no servers");
  return node;
};

export const faults: readonly Fault[] = [
  {
    name: "kill -9 of the primary's PostgreSQL",
    times: 4,
    isQuick: true,
    async make(cluster) {
      const primary = await cluster.settled();
      sh(primary, `kill -9 ${postmaster(primary)}`);
    },
  },
  {
    name: "kill -9 of a Signalbox node",
    times: 3,
    async make(_cluster, servers) {
      const node = nodeOf(servers);
      node.process().kill("SIGKILL");
      await node.process().exited;
      await Bun.sleep(3_000);
      node.start();
    },
  },
  {
    name: "kill -9 of the etcd leader",
    times: 2,
    async make(cluster) {
      const leader = await leaderOf(cluster);
      leader.etcd().kill("SIGKILL");
      await leader.etcd().exited;
      await Bun.sleep(15_000);
      leader.startEtcd();
    },
  },
  {
    name: "partition of the primary from the rest",
    times: 4,
    async make(cluster) {
      const { host } = await cluster.settled();
      host.cut();
      await Bun.sleep(40_000);
      host.heal();
    },
  },
  {
    name: "partition of a node from the database",
    times: 2,
    isQuick: true,
    async make({ members }, servers) {
      const { host } = nodeOf(servers);
      host.cut(members.map((member) => member.host));
      await Bun.sleep(20_000);
      host.heal();
    },
  },
  {
    name: "switch-over by hand",
    times: 3,
    make: (cluster) => cluster.switchOver(),
  },
  {
    name: "the primary's PostgreSQL frozen for 15 s",
    times: 2,
    async make(cluster) {
      const primary = await cluster.settled();
      const all = `${postmaster(primary)} $(pgrep -P ${postmaster(primary)})`;
      sh(primary, `kill -STOP ${all}`);
      await Bun.sleep(15_000);
      // None of them can have ended or started others meanwhile.
      sh(primary, `kill -CONT ${all}`);
    },
  },
];
