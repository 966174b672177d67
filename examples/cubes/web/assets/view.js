// One side of the world, drawn with WebGL.
import * as THREE from "./vendor/three.module.min.js";

const sizes = { player: 1.4, other: 0.4 };
const most = 4096;
const schemes = {
  light: { sky: 0xdfe6ee, ground: 0xc9d2dc, lines: 0xaab6c4, rest: 0xf2f4f7, moves: 0xe2574c, player: 0x2f7fc8 },
  dark: { sky: 0x171c23, ground: 0x232a34, lines: 0x3a4553, rest: 0x8d99a8, moves: 0xff6b5e, player: 0x58a6f0 },
};
const dark = matchMedia("(prefers-color-scheme: dark)");

export class View {
  constructor(canvas) {
    this.canvas = canvas;
    this.renderer = new THREE.WebGLRenderer({ canvas, antialias: true });
    this.renderer.setPixelRatio(Math.min(devicePixelRatio, 2));
    this.scene = new THREE.Scene();
    this.camera = new THREE.PerspectiveCamera(45, 1.6, 0.5, 200);
    this.camera.up.set(0, 0, 1);
    this.aim = new THREE.Vector3();

    const sun = new THREE.DirectionalLight(0xffffff, 1.9);
    sun.position.set(-12, -18, 30);
    this.scene.add(sun, new THREE.HemisphereLight(0xffffff, 0x8899aa, 1.3));
    this.floor = new THREE.Mesh(new THREE.PlaneGeometry(200, 200), new THREE.MeshLambertMaterial());
    this.floor.position.z = -0.01;
    this.scene.add(this.floor);

    const box = new THREE.BoxGeometry(1, 1, 1);
    this.others = new THREE.InstancedMesh(box, new THREE.MeshLambertMaterial(), most);
    this.others.count = 0;
    this.others.frustumCulled = false;
    this.player = new THREE.Mesh(box, new THREE.MeshLambertMaterial());
    this.player.scale.setScalar(sizes.player);
    this.scene.add(this.others, this.player);

    this.moving = new Uint8Array(most);
    this.matrix = new THREE.Matrix4();
    this.turn = new THREE.Quaternion();
    this.at = new THREE.Vector3();
    this.scale = new THREE.Vector3();
    this.color = new THREE.Color();
    this.restyle();
    dark.addEventListener("change", () => this.restyle());
  }

  // restyle takes the colors of the scheme that the visitor prefers.
  restyle() {
    this.scheme = schemes[dark.matches ? "dark" : "light"];
    this.scene.background = new THREE.Color(this.scheme.sky);
    this.scene.fog = new THREE.Fog(this.scheme.sky, 30, 75);
    this.floor.material.color.set(this.scheme.ground);
    this.player.material.color.set(this.scheme.player);
    if (this.grid) this.scene.remove(this.grid);
    this.grid = new THREE.GridHelper(64, 32, this.scheme.lines, this.scheme.lines);
    this.grid.rotation.x = Math.PI / 2;
    this.scene.add(this.grid);
    for (let i = 0; i < this.others.count; i++) this.paint(i);
  }

  paint(i) {
    this.others.setColorAt(i, this.color.set(this.moving[i] ? this.scheme.moves : this.scheme.rest));
    this.others.instanceColor.needsUpdate = true;
  }

  // place sets the pose and the color of a cube.
  place({ n, position, turn, interacting, unseen }) {
    if (n === 0) {
      if (unseen) return;
      this.player.position.set(...position);
      this.player.quaternion.set(...turn).normalize();
      return;
    }
    const i = n - 1;
    if (i >= most) return;
    this.scale.setScalar(unseen ? 0 : sizes.other);
    this.at.set(...position);
    this.turn.set(...turn).normalize();
    this.others.setMatrixAt(i, this.matrix.compose(this.at, this.turn, this.scale));
    this.others.instanceMatrix.needsUpdate = true;
    if (i >= this.others.count) {
      this.others.count = i + 1;
      this.moving[i] = interacting;
      this.paint(i);
    }
    if (this.moving[i] !== +interacting) {
      this.moving[i] = +interacting;
      this.paint(i);
    }
  }

  draw() {
    const { clientWidth: w, clientHeight: h } = this.canvas;
    if (w !== this.width || h !== this.height) {
      this.width = w;
      this.height = h;
      this.renderer.setSize(w, h, false);
      this.camera.aspect = w / h;
      this.camera.updateProjectionMatrix();
    }
    const now = performance.now();
    this.aim.lerp(this.player.position, 1 - Math.exp(-(now - (this.drawn ?? 0)) / 150));
    this.drawn = now;
    this.camera.position.set(this.aim.x, this.aim.y - 13, 9);
    this.camera.lookAt(this.aim.x, this.aim.y + 1.5, 0.5);
    this.renderer.render(this.scene, this.camera);
  }
}
