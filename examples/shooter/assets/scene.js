// Draws boxes and balls with WebGL, each with a position, three axes and a color.
const vertex = `#version 300 es
in vec3 corner, normal, at, x, y, z, paint;
uniform mat4 view;
out vec3 where, up, color;
void main() {
  where = at + mat3(x, y, z) * corner;
  up = normalize(mat3(x, y, z) * normal);
  color = paint;
  gl_Position = view * vec4(where, 1);
}`;
const fragment = `#version 300 es
precision highp float;
in vec3 where, up, color;
uniform vec3 eye;
out vec4 pixel;
void main() {
  vec3 c = color;
  if (c.r < 0.0) c = vec3(1.0, 0.35, 0.25); // a beam
  else {
    vec2 line = abs(fract(where.xy / 4.0 + 0.5) - 0.5) * 4.0;
    if (up.z > 0.9 && where.z < 0.01) c *= mix(0.82, 1.0, smoothstep(0.02, 0.08, min(line.x, line.y)));
    c *= 0.55 + 0.25 * up.z + 0.3 * max(0.0, dot(up, normalize(vec3(-0.5, -0.7, 1.2))));
  }
  pixel = vec4(mix(c, vec3(0.66, 0.74, 0.82), smoothstep(25.0, 75.0, distance(where, eye))), 1);
}`;

// box and ball return corners with their normals.
function box() {
  const out = [];
  for (let axis = 0; axis < 3; axis++) for (const side of [-1, 1]) {
    for (const [u, v] of [[-1, -1], [1, -1], [1, 1], [-1, -1], [1, 1], [-1, 1]]) {
      const p = [0, 0, 0], n = [0, 0, 0];
      p[axis] = n[axis] = side;
      p[(axis + 1) % 3] = u;
      p[(axis + 2) % 3] = v;
      out.push(...p, ...n);
    }
  }
  return out;
}

function ball() {
  const out = [], rings = 14, around = 24;
  const point = (i, k) => {
    const a = Math.PI * i / rings, b = 2 * Math.PI * k / around;
    const p = [Math.sin(a) * Math.cos(b), Math.sin(a) * Math.sin(b), Math.cos(a)];
    out.push(...p, ...p);
  };
  for (let i = 0; i < rings; i++) for (let k = 0; k < around; k++) {
    for (const [u, v] of [[0, 0], [1, 0], [1, 1], [0, 0], [1, 1], [0, 1]]) point(i + u, k + v);
  }
  return out;
}

export class Scene {
  constructor(canvas) {
    this.canvas = canvas;
    const gl = this.gl = canvas.getContext("webgl2", { antialias: true });
    const program = gl.createProgram();
    for (const [type, source] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
      const shader = gl.createShader(type);
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(program));
    gl.useProgram(program);
    gl.enable(gl.DEPTH_TEST);
    gl.clearColor(0.66, 0.74, 0.82, 1);
    this.uniforms = { view: gl.getUniformLocation(program, "view"), eye: gl.getUniformLocation(program, "eye") };
    this.boxes = this.mesh(program, box());
    this.balls = this.mesh(program, ball());
  }

  // mesh returns the buffers of a shape, which is drawn once for each instance.
  mesh(program, corners) {
    const gl = this.gl, array = gl.createVertexArray(), instances = gl.createBuffer();
    const attribute = (name, stride, offset, divisor) => {
      const at = gl.getAttribLocation(program, name);
      gl.enableVertexAttribArray(at);
      gl.vertexAttribPointer(at, 3, gl.FLOAT, false, 4 * stride, 4 * offset);
      gl.vertexAttribDivisor(at, divisor);
    };
    gl.bindVertexArray(array);
    gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
    gl.bufferData(gl.ARRAY_BUFFER, new Float32Array(corners), gl.STATIC_DRAW);
    attribute("corner", 6, 0, 0);
    attribute("normal", 6, 3, 0);
    gl.bindBuffer(gl.ARRAY_BUFFER, instances);
    ["at", "x", "y", "z", "paint"].forEach((name, i) => attribute(name, 15, 3 * i, 1));
    return { array, instances, corners: corners.length / 6, data: [] };
  }

  draw(eye, ahead, left) {
    const { gl, canvas } = this, ratio = Math.min(devicePixelRatio, 2);
    const w = Math.round(canvas.clientWidth * ratio), h = Math.round(canvas.clientHeight * ratio);
    if (canvas.width !== w || canvas.height !== h) Object.assign(canvas, { width: w, height: h });
    gl.viewport(0, 0, w, h);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.uniformMatrix4fv(this.uniforms.view, false, camera(eye, ahead, left, w / h));
    gl.uniform3fv(this.uniforms.eye, eye);
    for (const m of [this.boxes, this.balls]) {
      gl.bindVertexArray(m.array);
      gl.bindBuffer(gl.ARRAY_BUFFER, m.instances);
      gl.bufferData(gl.ARRAY_BUFFER, new Float32Array(m.data), gl.DYNAMIC_DRAW);
      gl.drawArraysInstanced(gl.TRIANGLES, 0, m.corners, m.data.length / 15);
    }
  }
}

const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
export const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];

// camera returns the matrix of a view with a vertical angle of 60 degrees.
function camera(eye, ahead, left, aspect) {
  const up = cross(ahead, left), f = 1 / Math.tan(Math.PI / 6), near = 0.1, far = 200;
  const a = (far + near) / (far - near), b = -2 * far * near / (far - near), out = [];
  for (let i = 0; i < 4; i++) {
    const v = i < 3 ? [-left[i], up[i], ahead[i]] : [dot(left, eye), -dot(up, eye), -dot(ahead, eye)];
    out.push(v[0] * f / aspect, v[1] * f, v[2] * a + (i === 3 ? b : 0), v[2]);
  }
  return new Float32Array(out);
}
